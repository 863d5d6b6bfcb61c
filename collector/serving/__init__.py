"""The processes that listen: granian."""
