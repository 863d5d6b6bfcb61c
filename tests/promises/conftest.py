"""What the tests of several promises share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit import collector_fixtures as fixtures
from tests.kit import collectors
from tests.ldp_client import exact_laws
from tests.ldp_client.devices import Server
from tests.promises import watched_ledger
from tests.promises.watched_ledger import listening

log_everything, make_harness, study = fixtures.log_everything, fixtures.make_harness, fixtures.study
start_server, postgresql = fixtures.start_server, fixtures.postgresql
make_postgresql = fixtures.make_postgresql
memoized, watched = watched_ledger.memoized, watched_ledger.watched
few_hashes = exact_laws.few_hashes


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One collector for all tests of a file."""
    with listening() as started:
        yield started


@pytest.fixture
def one_of_200(monkeypatch: pytest.MonkeyPatch) -> None:
    """What people say of the 200 choices of `canaries`."""
    monkeypatch.setitem(collectors.ANSWERS, "fruit", 7)
