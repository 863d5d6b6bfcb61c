"""Fixtures of collectors that several folders of tests use."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from collector import clock
from collector.limiter import THROTTLED
from schemas import Study
from tests.kit.collectors import TODAY, Harness, Server, build_study
from tests.kit.postgresql import Postgresql


@pytest.fixture(autouse=True)
def log_everything() -> None:
    """What an earlier test had logged is logged again."""
    THROTTLED._seen.clear()


@pytest.fixture(autouse=True)
def commands_know_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands have no clock that tests set: for them it is never before the harness's days."""
    day = max(clock.utc_today(), TODAY + timedelta(30))
    monkeypatch.setattr(clock, "utc_today", lambda: day)


@pytest.fixture
def study() -> Study:
    return build_study()


@pytest.fixture
def make_harness(tmp_path: Path) -> Iterator[Callable[..., Harness]]:
    made: list[Harness] = []

    def make(name: str = "collector.sqlite3", **settings: Any) -> Harness:
        made.append(Harness(settings.pop("database", f"sqlite:///{tmp_path / name}"), **settings))
        return made[-1]

    yield make
    for harness in made:
        harness.collector.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """A PostgreSQL server of these tests' own."""
    server = Postgresql()
    yield server
    server.remove()


@pytest.fixture
def make_postgresql() -> Iterator[Callable[..., Postgresql]]:
    """Servers that a test may break."""
    made: list[Postgresql] = []

    def make(*arguments: Any, **options: Any) -> Postgresql:
        made.append(Postgresql(*arguments, **options))
        return made[-1]

    yield make
    for server in reversed(made):
        server.remove()


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*options: str, folder: Path = tmp_path, environment: dict[str, str] | None = None) -> Server:
        started.append(Server(folder, *options, environment=environment))
        return started[-1]

    yield start
    for server in started:
        server.kill()
