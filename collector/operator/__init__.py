"""What the people see and set who run a collector: the page, keys, commands."""
