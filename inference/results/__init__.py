"""What a fit gives: posteriors, their diagnostics, plots, files and the report page."""
