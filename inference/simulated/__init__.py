"""Simulated studies: answers from a model, noise from the study's mechanism, posteriors of many at once."""
