"""A file is written anew as a whole, or an error says why not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from unittest.mock import MagicMock, Mock

import pytest

from collector import daily
from collector.daily import UnfinishedError, rewrite_files
from tests.kit.errors import raises


def test_locked_database_is_not_reported_as_full_disk(make_harness):
    habits = make_harness(lock_timeout=0.2)
    with closing(sqlite3.connect(habits.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with raises(UnfinishedError, "database.order_in_files", "database is locked"):
            rewrite_files(habits.collector.database)


@pytest.mark.attack(12)
def test_upkeep_fails_for_role_without_vacuum_right(make_harness, postgresql):
    """PostgreSQL only warns where a role may not rewrite tables; the upkeep must fail."""
    database = make_harness(database=postgresql.new_database()).collector.database
    with database.writing_connection() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS guest")
        connection.exec_driver_sql("CREATE ROLE guest LOGIN")
        connection.exec_driver_sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO guest")
    guest = type(database)(database.url.set(username="guest").render_as_string(), 1)
    with raises(UnfinishedError, "database.order_in_files", "vacuum"):
        rewrite_files(guest)
    guest.engine.dispose()


@pytest.mark.attack(12)
def test_each_table_has_its_own_deadline(monkeypatch):
    """Rewriting a large table takes minutes; then a row just withdrawn ends nothing, but a reader does."""
    clock = Mock(**{"monotonic.return_value": 0.0})
    database = MagicMock(file=None)
    seen, left = [], {"large": [1, 0], "small": [1, 0], "read": [1] * 9}

    def rewrite(_connection, name):
        seen.append(name)
        clock.monotonic.return_value += 100 if name == "large" else 1
        return left[name].pop(0)

    monkeypatch.setattr(daily, "time", clock)
    monkeypatch.setattr(daily, "_rewrite_table", rewrite)
    rewrite_files(database, ["large", "small"])
    assert seen == ["large", "large", "small", "small"]
    with raises(UnfinishedError, "database.order_in_files"):
        rewrite_files(database, ["read"])
