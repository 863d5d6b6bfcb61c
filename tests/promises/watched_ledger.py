"""SQLite connections of a device that a test can watch, stop at any statement, or break."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ldp_client import Device
from ldp_client.documents.errors import AlreadyAnsweredError
from ldp_client.mechanisms import MECHANISMS
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Memoized, Server

Patch = pytest.MonkeyPatch
BUDGET = "8"
NOTHING = "SELECT 1"
# Two rounds of a study: the second repeats a permanent answer.
ROUNDS = [
    Study(studies.document(studies.NUMBER, studies.YES_NO, id="rounds")),
    Study(studies.document(studies.YES_NO, id="rounds", version=2)),
]
CHANGES = ("INSERT", "UPDATE", "DELETE", "COMMIT")


class Crash(BaseException):
    """The process ends here."""


class Watched(sqlite3.Connection):
    """A connection whose statements a test sees first.

    before: what happens ahead of each statement. rewrite: what the statement becomes. commit_done: what
    happens right behind a commit. opened: all connections since they were last closed.
    """

    before: ClassVar[Callable[[sqlite3.Connection, str], Any]]
    rewrite: ClassVar[Callable[[sqlite3.Connection, str], str]]
    commit_done: ClassVar[Callable[[sqlite3.Connection], Any]]
    opened: ClassVar[list[sqlite3.Connection]] = []

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement, unless the test stops it."""
        Watched.before(self, statement)
        cursor = self.run(Watched.rewrite(self, statement), *values)
        if statement.upper().startswith("COMMIT"):
            Watched.commit_done(self)
        return cursor

    def commit(self) -> None:
        """Commit by this method, as by the statement."""
        self.execute("COMMIT")

    def run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement of the test's own."""
        return super().execute(statement, *values)


@pytest.fixture
def memoized(monkeypatch: Patch) -> None:
    """The permanent answer can be told by its bytes."""
    monkeypatch.setitem(MECHANISMS, "randomized_response", Memoized)


@pytest.fixture
def watched(monkeypatch: Patch) -> Iterator[None]:
    """The device's connections are watched, and its permanent answer can be told by its bytes."""
    monkeypatch.setitem(MECHANISMS, "randomized_response", Memoized)
    with monkeypatch.context() as patch:
        watch(patch)
        yield
        close_all()
        untouched()


def live(folder: Path, url: str, hours: int = 2, rounds: int = 2) -> None:
    """A device consents, answers rounds and sends each; what was answered before is not answered again."""
    device = Device(folder, BUDGET, url)
    answers = {"hours": hours, "ever": hours % 2 == 0}
    for study in ROUNDS[:rounds]:
        with suppress(AlreadyAnsweredError):
            device.consent(study)
            device.answer(study, {question.id: answers[question.id] for question in study.questions})
        device.flush(attempts=1)


def unflushed(_connection: sqlite3.Connection, statement: str) -> str:
    """The statement, with which SQLite waits for no disk."""
    return "PRAGMA synchronous = OFF" if statement.startswith("PRAGMA synchronous =") else statement


def untouched() -> None:
    """Statements run as they are, but for flushing: these tests lose no power."""
    Watched.before = lambda _connection, _statement: None
    Watched.rewrite = unflushed
    Watched.commit_done = lambda _connection: None


def close_all() -> None:
    """Close what a process that ended had open: SQLite undoes what was not committed."""
    while Watched.opened:
        Watched.opened.pop().close()


def watch(monkeypatch: Patch) -> None:
    """Each connection that is made from now on is a watched one, which waits for no lock."""
    connect = sqlite3.connect

    def watched(path: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(
            path, **{**options, "timeout": 0, "factory": Watched, "check_same_thread": False}
        )
        Watched.opened.append(connection)
        return connection

    untouched()
    monkeypatch.setattr(sqlite3, "connect", watched)


@contextmanager
def at_statement(
    point: int, act: Callable[[], None], which: tuple[str, ...] = CHANGES
) -> Iterator[list[int]]:
    """Act once, ahead of the statement of that number; count the statements in the list's only entry.

    which: how a statement begins that counts. The seal's does not: a commit follows at once.
    """
    seen = [0]

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        seen[0] += statement.startswith(which) and not statement.startswith("UPDATE seal")
        if seen[0] == point and statement.startswith(which):
            Watched.before = lambda _connection, _statement: None
            act()

    Watched.before = before
    try:
        yield seen
    finally:
        Watched.before = lambda _connection, _statement: None


def without(*lost: str) -> Callable[[sqlite3.Connection, str], str]:
    """Statements that begin so are lost, and with a lost BEGIN the COMMIT that ends it."""

    def rewrite(connection: sqlite3.Connection, statement: str) -> str:
        is_idle_end = statement.startswith("COMMIT") and not connection.in_transaction
        is_lost = statement.startswith(lost) or is_idle_end
        return NOTHING if is_lost else unflushed(connection, statement)

    return rewrite


class Arrivals(list[Any]):
    """The requests that a collector got, each of which a test may look at as it arrives."""

    look: Callable[[Any], Any] = staticmethod(lambda _request: None)

    def append(self, request: Any) -> None:
        """Look first: the device learns nothing of the arrival yet."""
        self.look(request)
        super().append(request)


@contextmanager
def listening() -> Iterator[Server]:
    """A collector on loopback that keeps what it was sent."""
    with Server() as server:
        server.requests = Arrivals()
        yield server


def bodies_of(server: Server) -> list[bytes]:
    """The bodies of all reports that arrived, in order."""
    return [body for method, _, body, _ in server.requests if method == "PUT"]
