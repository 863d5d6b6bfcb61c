"""Analyses of private answers with public columns: formulas, crossed tables, surveys done with dice."""
