"""Export of reports: streams in several formats, and complete downloads."""
