"""The subcommands of `ldpkit` that a device and its owner use: each parses, calls one function, prints."""
