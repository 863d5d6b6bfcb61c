"""Laws of clipped and perturbed numbers: of each report, of histograms and of sums."""
