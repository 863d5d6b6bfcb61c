"""Laws of regressions: of summed second moments, and of perturbed records."""
