"""Golden fits: posteriors that a few lines of NumPy write down anew, for every model, mechanism and route.

`python -m tests.inference.golden` writes them to tests/golden/fits, which the tests of promise 17 read.
"""
