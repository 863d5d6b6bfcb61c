"""Fixtures of the collector's tests."""

import os

import pytest

from tests.kit import collector_fixtures as fixtures
from tests.kit import operators, secure_sum
from tests.kit.collectors import TICKET_KEY, build_report

log_everything, commands_know_the_day = fixtures.log_everything, fixtures.commands_know_the_day
make_harness, study, start_server = fixtures.make_harness, fixtures.study, fixtures.start_server
postgresql, make_postgresql = fixtures.postgresql, fixtures.make_postgresql
network, hurried, never_pause = secure_sum.network, secure_sum.hurried, operators.never_pause


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The current folder, which is empty; nothing in the environment names another."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("LDPKIT_")]:
        monkeypatch.delenv(name)
    return folder


@pytest.fixture
def empty(make_harness):
    return make_harness()


@pytest.fixture
def habits(empty, study):
    assert empty.publish(study).status_code == 201
    return empty


@pytest.fixture
def inviting(make_harness, study):
    """A collector with the study `habits` and a ticket key."""
    return make_harness(ticket_key=TICKET_KEY, published=[study])


@pytest.fixture
def filled(habits, study):
    """A collector with forty reports, which are its `sent` in the order of their ids."""
    habits.sent = sorted((build_report(study) for _ in range(40)), key=lambda report: report.id)
    assert habits.post([report.to_document() for report in habits.sent]).status_code == 200
    return habits


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'either.sqlite3'}"
    return request.getfixturevalue("postgresql").new_database()


@pytest.fixture
def either(make_harness, database_url, study):
    """A collector on a database of each kind, with the study `habits` and a ticket key."""
    return make_harness(database=database_url, lock_timeout=10, ticket_key=TICKET_KEY, published=[study])


@pytest.fixture
def elephant(make_harness, postgresql, study):
    """A collector on PostgreSQL, with the study `habits`."""
    return make_harness(database=postgresql.new_database(), lock_timeout=10, published=[study])
