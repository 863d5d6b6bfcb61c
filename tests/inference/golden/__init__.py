"""Golden fits: posteriors that a few lines of NumPy write down anew, for models, mechanisms and routes.

`python -m tests.inference.golden` writes them to tests/golden/fits, which the tests of promise 17 read.
"""
