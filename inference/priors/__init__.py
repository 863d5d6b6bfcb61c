"""Priors: the distributions that a study or a caller may state, and coordinates for shares."""

from inference.priors.laws import with_priors

__all__ = ["with_priors"]
