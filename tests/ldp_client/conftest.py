"""References in these tests are computed to 900 bits, whichever of them run; a collector of devices."""

import mpmath
import pytest

from tests.ldp_client.devices import STUDY, Server

mpmath.mp.prec = 900


@pytest.fixture
def server():
    """A collector that serves the study."""
    with Server(STUDY.canonical()) as started:
        yield started
