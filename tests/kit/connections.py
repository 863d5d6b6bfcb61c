"""Connections to databases that a test can watch, and those of SQLite stop at any statement, or break."""

import sqlite3
from functools import partial

import pytest
from sqlalchemy import event


class Watched(sqlite3.Connection):
    """A connection whose statements a test sees first.

    before: what happens ahead of each statement. rewrite: what the statement becomes. opened: all
    connections since they were last closed.
    """

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        Watched.opened.append(self)

    def execute(self, statement, *values):
        """Run one statement, unless the test stops it."""
        Watched.before(self, statement)
        return super().execute(Watched.rewrite(self, statement), *values)

    def commit(self):
        """Commit, unless the test stops it."""
        Watched.before(self, "COMMIT")
        super().commit()

    def pragma(self, name):
        """The value of a setting."""
        return super().execute(f"PRAGMA {name}").fetchone()[-1]


def close_all():
    """Close what a process that ended had open: SQLite undoes what was not committed."""
    while Watched.opened:
        Watched.opened.pop().close()


@pytest.fixture
def watched(monkeypatch):
    """Each connection that is made from now on is a watched one, whose statements run as they are."""
    monkeypatch.setattr(Watched, "before", lambda _connection, _statement: None, raising=False)
    monkeypatch.setattr(Watched, "rewrite", lambda _connection, statement: statement, raising=False)
    monkeypatch.setattr(Watched, "opened", [], raising=False)
    # SQLAlchemy asks the second.
    for module in (sqlite3, sqlite3.dbapi2):
        monkeypatch.setattr(module, "connect", partial(module.connect, factory=Watched))


def before_each(engine, call):
    """Call something before each statement of an engine, except the ends of transactions."""

    def trace(driver, *_):
        driver.set_trace_callback(lambda text: text.startswith(("COMMIT", "ROLLBACK")) or call())

    if engine.dialect.name == "sqlite":
        event.listen(engine, "checkout", trace)
    else:
        event.listen(engine, "before_cursor_execute", lambda *_: call())
