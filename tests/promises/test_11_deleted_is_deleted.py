"""Withdrawn, expired and deleted reports leave the tables, the summaries and the bytes on disk permanently.

The files are searched before the daily job rewrites them.
"""

import sqlite3
from contextlib import closing
from datetime import timedelta
from functools import partial

import pytest

from collector.retention import delete_overdue, kept_everywhere
from tests.kit import collector_fixtures as fixtures
from tests.kit.collectors import LONG_CHOICE, TODAY, build_report, build_study
from tests.kit.connections import Watched

commands_know_the_day = fixtures.commands_know_the_day
REPORTS, BATCHES = 80, 4
WAYS = WITHDRAWN, DELETED, EXPIRED = ("withdrawn", "study deleted", "expired")


def study_of(way):
    """A study that states how long its reports are kept where they are to expire."""
    kept = {"closes": (TODAY + timedelta(2)).isoformat(), "retention": {"days": 20}}
    return build_study(questions=[LONG_CHOICE], **(kept if way == EXPIRED else {}))


def delete(harness, way, reports):
    """The reports that went: some that were withdrawn, or all."""
    if way == WITHDRAWN:
        gone = reports[::2]
        for number, report in enumerate(gone):
            secret = report.secret if number % 2 else b""
            assert harness.withdraw(report.id, secret=secret).status_code == 200
        return gone
    if way == DELETED:
        harness.operate("delete", "habits", "--yes")
        return reports
    harness.day += timedelta(30)
    collector = harness.collector
    find = partial(collector.rules.find, reserved=True)
    (kept,) = kept_everywhere(collector)
    assert delete_overdue(collector.writer.act, find, kept, harness.day) == len(reports)
    return reports


def canaries_in(harness, way, reports):
    """How many of these reports' secrets, payloads, and ids unless they were withdrawn, the files have."""
    with closing(sqlite3.connect(harness.path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    content = harness.stored_bytes()
    canaries = [payload for report in reports for payload in (*report.payloads.values(), report.secret)]
    if way != WITHDRAWN:
        canaries += [bytes.fromhex(report.id) for report in reports]
    return sum(canary in content for canary in canaries)


def check_deletion(harness, way):
    """A deleted report is not read, counted or found any more, and never comes back."""
    study = study_of(way)
    assert harness.publish(study).status_code == 201
    reports = [build_report(study) for _ in range(REPORTS)]
    for number in range(BATCHES):
        batch = [report.to_document() for report in reports[number::BATCHES]]
        assert harness.post(batch).get_json()["stored"] == len(batch)
    is_file = harness.collector.database.url.get_backend_name() == "sqlite"
    if is_file:
        assert canaries_in(harness, way, reports) == REPORTS * (1 if way == WITHDRAWN else 2)
    gone = delete(harness, way, reports)
    kept = {report.id for report in reports} - {report.id for report in gone}
    if is_file:
        assert canaries_in(harness, way, gone) == 0
    payloads = {bytes(row[0]) for row in harness.sql("SELECT payloads FROM reports")}
    assert not payloads & {payload for report in gone for payload in report.payloads.values()}
    summary = harness.summary()
    counted = summary.get_json()["questions"]["fruit"]["n"] if summary.status_code == 200 else 0
    assert counted == len(kept)
    assert {harness.put(report).status_code for report in gone[:10]} == {410}
    harness.post([report.to_document() for report in gone])
    assert {report.id for report in harness.exported()} == kept


@pytest.mark.parametrize("way", WAYS)
def test_deleted_reports_are_in_no_table_summary_or_file(make_harness, way):
    check_deletion(make_harness(), way)


@pytest.mark.slow
@pytest.mark.needs("postgres")
@pytest.mark.parametrize("way", WAYS)
def test_deleted_reports_are_in_no_table_or_summary_of_postgresql(make_harness, postgresql, way):
    check_deletion(make_harness(database=postgresql.new_database(), lock_timeout=5), way)


@pytest.mark.usefixtures("watched")
def test_planted_bytes_that_are_not_overwritten_are_found(make_harness):
    Watched.rewrite = lambda _connection, statement: statement.replace(
        "secure_delete = ON", "secure_delete = OFF"
    )
    with pytest.raises(AssertionError):
        check_deletion(make_harness(), DELETED)
