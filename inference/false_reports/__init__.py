"""Bound the effect of false reports on a result, and check that reports conform to their mechanism."""
