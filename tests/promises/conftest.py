"""What the tests of several promises share."""

import pytest

from ldp_client.mechanisms import MECHANISMS
from tests.kit import collector_fixtures as fixtures
from tests.kit import connections
from tests.ldp_client import devices, exact_laws

log_everything, make_harness, study = fixtures.log_everything, fixtures.make_harness, fixtures.study
start_server, postgresql = fixtures.start_server, fixtures.postgresql
make_postgresql, server = fixtures.make_postgresql, devices.server
watched, few_hashes = connections.watched, exact_laws.few_hashes


@pytest.fixture
def memoized(monkeypatch):
    """The permanent answer can be told by its bytes, the first nine of each payload."""
    monkeypatch.setitem(MECHANISMS, "randomized_response", devices.Memoized)
