"""Fixtures of collectors that several folders of tests use."""

from datetime import timedelta

import pytest

from collector import clock
from collector.limiter import THROTTLED
from tests.kit.collectors import TODAY, Harness, Server, build_study
from tests.kit.postgresql import Postgresql


@pytest.fixture(autouse=True)
def log_everything():
    """What an earlier test had logged is logged again."""
    THROTTLED._seen.clear()


@pytest.fixture(autouse=True)
def commands_know_the_day(monkeypatch):
    """Commands have no clock that tests set: for them it is never before the harness's days."""
    day = max(clock.utc_today(), TODAY + timedelta(30))
    monkeypatch.setattr(clock, "utc_today", lambda: day)


@pytest.fixture
def study():
    return build_study()


@pytest.fixture
def make_harness(tmp_path):
    """Make a collector with these settings, at which studies are published."""
    made = []

    def make(name="collector.sqlite3", published=(), **settings):
        made.append(Harness(settings.pop("database", f"sqlite:///{tmp_path / name}"), **settings))
        assert {made[-1].publish(one).status_code for one in published} <= {201}
        return made[-1]

    yield make
    for harness in made:
        harness.collector.close()


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server of these tests' own."""
    server = Postgresql()
    yield server
    server.remove()


@pytest.fixture
def make_postgresql():
    """Servers that a test may break."""
    made = []

    def make(*arguments, **options):
        made.append(Postgresql(*arguments, **options))
        return made[-1]

    yield make
    for server in reversed(made):
        server.remove()


@pytest.fixture
def start_server(tmp_path):
    started = []

    def start(*options, folder=tmp_path, environment=None):
        started.append(Server(folder, *options, environment=environment))
        return started[-1]

    yield start
    for server in started:
        server.kill()
