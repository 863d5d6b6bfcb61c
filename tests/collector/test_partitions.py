"""PostgreSQL keeps each study's reports in a separate table, with a file of its own."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import text

from collector import retention, store
from collector.db import Database
from collector.store import partition_names, read_sums
from tests.kit.deleting import delete_study


@pytest.fixture
def elephant(make_harness, postgresql, make_study):
    """Two studies, each with its own reports."""
    harness = make_harness(database=postgresql.new_database(), lock_timeout=0.5)
    for name in ("habits", "others"):
        assert harness.publish(make_study(id=name)).status_code == 201
    return harness


@pytest.fixture
def database(elephant):
    made = Database(elephant.collector.settings.database, 0.5)
    yield made
    made.engine.dispose()


def send(harness, study, make_report, count=5):
    reports = [make_report(study) for _ in range(count)]
    assert {harness.put(report).status_code for report in reports} == {201}
    return reports


def rows(database, table):
    with database.read() as session:
        return session.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()


def test_each_study_has_one_partition(elephant, database, make_study, make_report):
    assert elephant.publish(make_study(id="habits", version=2)).status_code == 201
    with database.read() as session:
        assert partition_names(session.connection()) == ["reports_1", "reports_2"]
    send(elephant, make_study(id="others"), make_report, 3)
    assert [rows(database, table) for table in ("reports_1", "reports_2", "reports")] == [0, 3, 3]


def test_study_is_deleted_under_a_readers_lock(elephant, database, make_study, make_report):
    """A backup, for example, holds a lock on every table while it runs."""
    send(elephant, make_study(), make_report)
    with elephant.collector.database.read() as reader:
        reader.execute(text("SELECT 1 FROM reports_1")).first()
        assert delete_study(database, "habits") == 5
    assert rows(database, "reports") == 0
    with database.read() as session:
        assert not read_sums(session, 1, 1, elephant.collector.rules.find("habits", 1).tally.size).any()


def test_expiring_one_version_keeps_the_others_reports(elephant, database, make_study, make_report):
    first, second = make_study(), make_study(version=2)
    send(elephant, first, make_report, 2)
    assert elephant.publish(second).status_code == 201
    send(elephant, second, make_report, 3)
    delete = partial(retention.delete_chosen, database.act, elephant.collector.rules.find, "habits")
    assert delete(store.Chosen(1, version=1), None, is_past=True) == 2
    assert rows(database, "reports_1") == 3
    assert delete(store.Chosen(1, version=2), None, is_past=True) == 3
    assert elephant.summary(version=2).get_json()["questions"]["ever"]["n"] == 0
