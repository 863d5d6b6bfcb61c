"""Put a backup in the place of a running server's database, or move it away: what it acknowledges is lost."""

from __future__ import annotations

import os
import shutil

import pytest

from collector.storage.backup import back_up
from collector.storage.database import Database
from tests.collector.answered import problem
from tests.collector.conftest import build_report, build_study


def restored(path):
    copy = path.with_name("backup.sqlite3")
    os.replace(copy, path)


def moved(path):
    shutil.move(path, path.with_name("elsewhere.sqlite3"))


@pytest.mark.parametrize("change", [restored, moved])
def test_nothing_is_acknowledged_that_would_be_lost(habits, study, caplog, change):
    assert habits.put(build_report(study)).status_code == 201
    back_up(habits.collector.database, habits.path.with_name("backup.sqlite3"))
    change(habits.path)
    for _ in range(12):
        assert problem(habits.put(build_report(study))) == (503, "unavailable")
    assert habits.publish(build_study(2)).status_code == 503
    assert habits.client.get("/readyz").status_code == 503
    assert habits.client.get("/healthz").status_code == 200
    assert "the database cannot be used" in caplog.text


def test_a_server_that_starts_again_goes_on_with_the_backup(habits, make_harness, study):
    first = build_report(study)
    habits.put(first)
    back_up(habits.collector.database, habits.path.with_name("backup.sqlite3"))
    habits.put(build_report(study))
    habits.collector.close()
    restored(habits.path)
    for name in ("-wal", "-shm"):
        habits.path.with_name(habits.path.name + name).unlink(missing_ok=True)
    again = make_harness()
    assert again.exported() == [first]
    assert again.put(build_report(study)).status_code == 201


def test_upkeep_changes_no_file(habits, study):
    """VACUUM writes the same file anew."""
    before = habits.path.stat().st_ino
    habits.put(build_report(study))
    database = Database(f"sqlite:///{habits.path}", 10)
    with database.engine.connect() as connection:
        connection.connection.driver_connection.execute("VACUUM")
    database.engine.dispose()
    assert habits.path.stat().st_ino == before
    assert habits.put(build_report(study)).status_code == 201
