"""Audit a study's privacy by exact laws, and by lower bounds on ε from events among real reports."""
