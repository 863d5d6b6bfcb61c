"""Analyses of private answers beside public columns: formulas, crossed tables, surveys done with dice."""
