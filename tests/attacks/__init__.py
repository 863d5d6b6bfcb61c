"""Attacks that once got through: each file's first line says what it tries, and what must stop it."""
