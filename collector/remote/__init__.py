"""Clients of other collectors and of nodes."""
