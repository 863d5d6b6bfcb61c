"""Collectors as they are ordinarily written, to compare with."""
