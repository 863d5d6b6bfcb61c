"""The documentation's site: pages that are made from the code while it is built."""
