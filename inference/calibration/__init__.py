"""Simulation-based calibration of a study's own questions (Talts et al. 2018)."""
