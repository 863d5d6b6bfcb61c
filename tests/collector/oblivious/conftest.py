"""Fixtures of gateways: a collector with keys, and devices that send through it."""

from tests.kit.oblivious import gateway, keys, make_gateway, send

__all__ = ["gateway", "keys", "make_gateway", "send"]
