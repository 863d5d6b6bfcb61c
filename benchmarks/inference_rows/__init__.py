"""The rows of `python -m benchmarks.inference`, one file for each kind of measurement."""
