"""Results of a fit: posteriors, their diagnostics, plots, files and the report page."""
