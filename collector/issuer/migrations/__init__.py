"""The tables' history, one step a file; run by it."""
