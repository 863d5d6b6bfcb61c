"""Algorithm 2 of DCA: from marginal moments and auxiliary data to the bounds of a second round."""
