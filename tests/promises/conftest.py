"""What the tests of several promises share."""

import pytest

from tests.kit import collector_fixtures as fixtures
from tests.kit import collectors, connections
from tests.ldp_client import devices, exact_laws
from tests.promises import lives

log_everything, make_harness, study = fixtures.log_everything, fixtures.make_harness, fixtures.study
start_server, postgresql = fixtures.start_server, fixtures.postgresql
make_postgresql, server = fixtures.make_postgresql, devices.server
memoized, watched, few_hashes = lives.memoized, connections.watched, exact_laws.few_hashes


@pytest.fixture
def one_of_200(monkeypatch: pytest.MonkeyPatch) -> None:
    """What people say of the 200 choices of `canaries`."""
    monkeypatch.setitem(collectors.ANSWERS, "fruit", 7)
