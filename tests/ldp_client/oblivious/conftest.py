"""Fixtures of devices that send through a relay."""

from tests.kit.oblivious import keys, relay, send

__all__ = ["keys", "relay", "send"]
