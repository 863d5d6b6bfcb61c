"""Plans and calibration of a study, by simulation."""
