"""Fixtures of gateways: a collector with keys, and the relays before it."""

from tests.kit.oblivious import gateway, keys, make_gateway, make_relay, relay, send

__all__ = ["gateway", "keys", "make_gateway", "make_relay", "relay", "send"]
