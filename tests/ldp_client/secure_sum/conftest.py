"""Fixtures of secure sums: nodes on loopback, and devices that wait for no window."""

from tests.kit.secure_sum import hurried, network

__all__ = ["hurried", "network"]
