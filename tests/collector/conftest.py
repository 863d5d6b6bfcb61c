"""Fixtures of the collector's tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas import Study
from tests.kit import collector_fixtures as fixtures
from tests.kit import secure_sum
from tests.kit.collectors import TICKET_KEY, Harness, build_report
from tests.kit.postgresql import Postgresql

log_everything, commands_know_the_day = fixtures.log_everything, fixtures.commands_know_the_day
make_harness, study, start_server = fixtures.make_harness, fixtures.study, fixtures.start_server
postgresql, make_postgresql = fixtures.postgresql, fixtures.make_postgresql
network, hurried = secure_sum.network, secure_sum.hurried


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is empty; nothing in the environment names another."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("LDPKIT_")]:
        monkeypatch.delenv(name)
    return folder


@pytest.fixture
def empty(make_harness: Callable[..., Harness]) -> Harness:
    return make_harness()


@pytest.fixture
def habits(empty: Harness, study: Study) -> Harness:
    assert empty.publish(study).status_code == 201
    return empty


@pytest.fixture
def inviting(make_harness: Callable[..., Harness], study: Study) -> Harness:
    """A collector with the study `habits` and a ticket key."""
    harness = make_harness(ticket_key=TICKET_KEY)
    assert harness.publish(study).status_code == 201
    return harness


@pytest.fixture
def filled(habits: Harness, study: Study) -> Harness:
    """A collector with forty reports, which are its `sent` in the order of their ids."""
    habits.sent = sorted((build_report(study) for _ in range(40)), key=lambda report: report.id)
    assert habits.post([report.to_document() for report in habits.sent]).status_code == 200
    return habits


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'either.sqlite3'}"
    server: Postgresql = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def either(make_harness: Callable[..., Harness], database_url: str, study: Study) -> Harness:
    """A collector on a database of each kind, with the study `habits` and a ticket key."""
    harness = make_harness(database=database_url, lock_timeout=10, ticket_key=TICKET_KEY)
    assert harness.publish(study).status_code == 201
    return harness


@pytest.fixture
def elephant(make_harness: Callable[..., Harness], postgresql: Postgresql, study: Study) -> Harness:
    """A collector on PostgreSQL, with the study `habits`."""
    harness = make_harness(database=postgresql.new_database(), lock_timeout=10)
    assert harness.publish(study).status_code == 201
    return harness
