"""Errors of a database become problems, and are logged once."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import OperationalError

from collector.db import OtherReleaseError, problem_of


def test_a_full_disk_is_logged_once(caplog):
    class FullError(Exception):
        sqlite_errorcode = sqlite3.SQLITE_FULL

    for _ in range(100):
        assert problem_of(OperationalError("", None, FullError())).kind.status == 507
    assert [record.message for record in caplog.records] == [
        "the database's disk is full: nothing more is stored"
    ]


def test_uploads_to_migrated_database_are_logged_once(caplog):
    """Each upload meets the same error for as long as the old server runs."""
    for _ in range(5):
        assert problem_of(OtherReleaseError("the database was migrated to 9999")).kind.status == 503
    assert caplog.text.count("migrated to 9999") == 1
