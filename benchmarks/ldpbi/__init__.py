"""The experiments of LDPBI, one file a figure; `python -m benchmarks.ldpbi --help`."""
