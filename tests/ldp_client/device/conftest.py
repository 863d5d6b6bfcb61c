"""Collectors and waits that the tests of a device share."""

import pytest

from tests.kit.stalling import Waits
from tests.ldp_client.devices import STUDY, Server


@pytest.fixture
def server():
    """A collector that serves the study."""
    with Server(STUDY.canonical()) as started:
        yield started


@pytest.fixture
def other():
    """Another collector, or a proxy."""
    with Server(STUDY.canonical()) as started:
        yield started


@pytest.fixture
def waits(monkeypatch):
    """The waits for exchanges."""
    return Waits(monkeypatch)
