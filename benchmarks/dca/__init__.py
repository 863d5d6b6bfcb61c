"""The regressions of DCA with projection; `python -m benchmarks.dca --help`."""
