"""Columns of many people's answers, as whoever holds them has them: no device does."""
