"""Withdrawn, expired and deleted reports leave the tables, the summaries and the bytes on disk permanently.

The files are searched before the daily job rewrites them. Each payload of a report is long enough that no
other bytes are like it.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from collector.daily import kept_everywhere
from collector.retention import delete_overdue
from schemas import Report, Study
from tests.kit import collector_fixtures as fixtures
from tests.kit.collectors import TODAY, Harness, build_report, build_study
from tests.promises.canaries import CHOICES

pytestmark = pytest.mark.usefixtures("one_of_200")
commands_know_the_day = fixtures.commands_know_the_day
Patch = pytest.MonkeyPatch
REPORTS, BATCHES = 80, 4
WITHDRAWN, DELETED, EXPIRED = "withdrawn", "study deleted", "expired"
WAYS = (WITHDRAWN, DELETED, EXPIRED)


def study_of(way: str) -> Study:
    """A study that states how long its reports are kept where they are to expire."""
    kept = {"closes": (TODAY + timedelta(2)).isoformat(), "retention": {"days": 20}}
    return build_study(questions=[CHOICES], **(kept if way == EXPIRED else {}))


def delete(harness: Harness, way: str, reports: list[Report]) -> list[Report]:
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


def canaries_in(harness: Harness, way: str, reports: list[Report]) -> int:
    """How many of these reports' secrets, payloads, and ids unless they were withdrawn, the files have."""
    with closing(sqlite3.connect(harness.path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    files = sorted(harness.path.parent.glob(f"{harness.path.name}*"))
    content = b"".join(file.read_bytes() for file in files)
    canaries = [payload for report in reports for payload in (*report.payloads.values(), report.secret)]
    if way != WITHDRAWN:
        canaries += [bytes.fromhex(report.id) for report in reports]
    return sum(canary in content for canary in canaries)


def problems(harness: Harness, way: str) -> list[str]:
    """Where a deleted report is still read, counted or found, or comes back."""
    study = study_of(way)
    assert harness.publish(study).status_code == 201
    reports = [build_report(study) for _ in range(REPORTS)]
    for number in range(BATCHES):
        batch = [report.to_document() for report in reports[number::BATCHES]]
        response = harness.post(batch)
        assert response.get_json().get("stored") == len(batch), response.text
    is_file = harness.collector.database.url.get_backend_name() == "sqlite"
    if is_file:
        assert canaries_in(harness, way, reports) == REPORTS * (1 if way == WITHDRAWN else 2)
    gone = delete(harness, way, reports)
    kept = {report.id for report in reports} - {report.id for report in gone}
    wrong = []
    if is_file and (left := canaries_in(harness, way, gone)):
        wrong.append(f"{left} canaries are left in the files")
    if rows := rows_of(harness, gone):
        wrong.append(f"{rows} payloads are left in the table")
    summary = harness.summary()
    counted = summary.get_json()["questions"]["fruit"]["n"] if summary.status_code == 200 else 0
    if counted != len(kept):
        wrong.append(f"the summary counts {counted}, and {len(kept)} are kept")
    again = {harness.put(report).status_code for report in gone[:10]}
    harness.post([report.to_document() for report in gone])
    if again != {410} or {report.id for report in harness.exported()} != kept:
        wrong.append(f"sent again they got {again}, and {len(harness.exported())} are exported")
    return wrong


def rows_of(harness: Harness, reports: list[Report]) -> int:
    """How many of these reports' payloads any row of the table has."""
    with harness.collector.database.read() as session:
        rows = {bytes(row[0]) for row in session.execute(text("SELECT payloads FROM reports"))}
    return len(rows & {payload for report in reports for payload in report.payloads.values()})


@pytest.mark.parametrize("way", WAYS)
def test_deleted_reports_are_in_no_table_summary_or_file(make_harness: Any, way: str) -> None:
    assert problems(make_harness(), way) == []


@pytest.mark.slow
@pytest.mark.needs("postgres")
@pytest.mark.parametrize("way", WAYS)
def test_deleted_reports_are_in_no_table_or_summary_of_postgresql(
    make_harness: Any, postgresql: Any, way: str
) -> None:
    assert problems(make_harness(database=postgresql.new_database(), lock_timeout=5), way) == []


class Forgetful(sqlite3.Connection):
    """A connection that forgets deleted bytes without overwriting them."""

    def execute(self, statement: str, *more: Any) -> sqlite3.Cursor:
        return super().execute(re.sub("secure_delete = .*", "secure_delete = OFF", statement), *more)


def test_planted_bytes_that_are_not_overwritten_are_found(make_harness: Any, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sqlite3.dbapi2, "connect", partial(sqlite3.dbapi2.connect, factory=Forgetful))
    assert any("canaries are left" in problem for problem in problems(make_harness(), DELETED))
