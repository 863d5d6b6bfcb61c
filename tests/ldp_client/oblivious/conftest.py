"""Fixtures of devices that send through a relay."""

from __future__ import annotations

from tests.kit.oblivious import keys, relay, send

__all__ = ["keys", "relay", "send"]
