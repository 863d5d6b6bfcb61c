"""The experiments of DPBLR on simulated tables; `python -m benchmarks.dpblr --help`."""
