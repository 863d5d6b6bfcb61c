"""Answers, studies, keys and tables in files."""
