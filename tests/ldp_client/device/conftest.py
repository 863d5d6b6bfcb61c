"""Collectors and waits that the tests of a device share."""

import threading
from types import SimpleNamespace

import pytest

from ldp_client.device import http
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
    with Server(STUDY.canonical()) as started:
        yield started


@pytest.fixture
def waits(monkeypatch):
    """The waits for exchanges: the seconds of each, and `wait`, which a test may replace."""
    waits = SimpleNamespace(seconds=[], wait=threading.Thread.join)

    class Exchange(threading.Thread):
        def join(self, timeout=None):
            assert timeout is not None
            waits.seconds.append(timeout)
            waits.wait(self, timeout)

    monkeypatch.setattr(http, "threading", SimpleNamespace(Thread=Exchange, Lock=threading.Lock))
    return waits


@pytest.fixture
def issuer():
    with Issuer() as started:
        yield started
