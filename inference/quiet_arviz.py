"""ArviZ without the notice about ArviZ 1 that ArviZ 0 prints at each import."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz as az

__all__ = ["az"]
