"""Priors: the distributions that a study or a caller may state, and correlation matrices."""
