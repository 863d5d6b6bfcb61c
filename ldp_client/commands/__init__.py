"""Subcommands of `ldpkit` for a device and its owner. Each parses, calls one function and prints."""
