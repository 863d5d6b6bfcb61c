"""Collectors and waits that the tests of a device share."""

import pytest

from tests.kit.stalling import Waits
from tests.ldp_client.devices import STUDY, YES, Server, consenting
from tests.ldp_client.issuers import Issuer


@pytest.fixture
def device(tmp_path, server):
    """A device that has answered the study of the collector, and has not sent."""
    device = consenting(tmp_path, "4", server.url)
    device.answer(STUDY, YES)
    return device


@pytest.fixture
def other():
    """Another collector, or a proxy."""
    with Server(STUDY.canonical()) as started:
        yield started


@pytest.fixture
def waits(monkeypatch):
    """The waits for exchanges."""
    return Waits(monkeypatch)


@pytest.fixture
def issuer():
    """An issuer of tickets."""
    with Issuer() as started:
        yield started
