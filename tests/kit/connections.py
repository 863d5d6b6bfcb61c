"""Connections to databases that a test can watch, and those of SQLite stop at any statement, or break."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
from sqlalchemy import Engine, event


class Watched(sqlite3.Connection):
    """A connection whose statements a test sees first.

    before: what happens ahead of each statement. rewrite: what the statement becomes. opened: all
    connections since they were last closed.
    """

    before: ClassVar[Callable[[Watched, str], object]]
    rewrite: ClassVar[Callable[[Watched, str], str]]
    opened: ClassVar[list[sqlite3.Connection]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        Watched.opened.append(self)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement, unless the test stops it."""
        Watched.before(self, statement)
        return super().execute(Watched.rewrite(self, statement), *values)

    def commit(self) -> None:
        """Commit, unless the test stops it."""
        Watched.before(self, "COMMIT")
        super().commit()

    def pragma(self, name: str) -> Any:
        """The value of a setting."""
        return super().execute(f"PRAGMA {name}").fetchone()[-1]


def close_all() -> None:
    """Close what a process that ended had open: SQLite undoes what was not committed."""
    while Watched.opened:
        Watched.opened.pop().close()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection that is made from now on is a watched one, whose statements run as they are."""
    monkeypatch.setattr(Watched, "before", lambda _connection, _statement: None, raising=False)
    monkeypatch.setattr(Watched, "rewrite", lambda _connection, statement: statement, raising=False)
    monkeypatch.setattr(Watched, "opened", [])
    # SQLAlchemy asks the second.
    for module in (sqlite3, sqlite3.dbapi2):
        monkeypatch.setattr(module, "connect", partial(module.connect, factory=Watched))


def before_each(engine: Engine, call: Callable[[], object]) -> None:
    """Call something before each statement of an engine, except the ends of transactions."""

    def trace(driver: Any, *_: object) -> None:
        driver.set_trace_callback(lambda text: text.startswith(("COMMIT", "ROLLBACK")) or call())

    if engine.dialect.name == "sqlite":
        event.listen(engine, "checkout", trace)
    else:
        event.listen(engine, "before_cursor_execute", lambda *_: call())
