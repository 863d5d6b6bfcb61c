"""The listening processes: granian."""
