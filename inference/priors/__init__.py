"""Priors: the documented defaults, those that a study or a caller states, and their NumPyro sites."""

from __future__ import annotations

from inference.priors.defaults import priors_of
from inference.priors.sites import (
    Regression,
    bernoulli,
    draw,
    exponential,
    features,
    multinomial,
    normal,
    regression,
    residual_sd,
)
from inference.priors.stating import with_priors

__all__ = [
    "Regression",
    "bernoulli",
    "draw",
    "exponential",
    "features",
    "multinomial",
    "normal",
    "priors_of",
    "regression",
    "residual_sd",
    "with_priors",
]
