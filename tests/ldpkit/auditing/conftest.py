"""What the audit's tests share: bytes of the system's generator that are the same in every run."""

from __future__ import annotations

import pytest

from tests.statistics import seed_the_system


@pytest.fixture(autouse=True)
def seeded_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit judges what mechanisms draw by themselves: here it finds a fault always or never."""
    seed_the_system(monkeypatch, request.node.name)
