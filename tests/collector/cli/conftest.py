"""Fixtures of commands that close secure sums."""

from __future__ import annotations

from tests.kit.secure_sum import network

__all__ = ["network"]
