"""An acknowledged report is stored exactly once: after kill -9, power loss, a restart and a failover too.

A connection that the tests hand to the collector notes how each commit was flushed, and fails on demand.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, ClassVar

import pytest

from collector.db import Database
from collector.migrations import make
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports
from schemas import Report, Study
from tests.kit import replicas
from tests.kit.collectors import TOKEN, Harness, build_report, wait_for
from tests.kit.failing_disk import FailingDisk
from tests.kit.operators import said_at_start
from tests.kit.postgresql import STANDBY

Patch = pytest.MonkeyPatch
FULL = 2
REPORTS = 100


class Watched(sqlite3.Connection):
    """A connection of the collector that notes how each commit of a change is flushed."""

    flushes: ClassVar[Counter[int]] = Counter()
    fails = False
    rewrite: Callable[[str], str] = str
    _changes = 0

    def execute(self, statement: str, *more: Any) -> sqlite3.Cursor:
        if statement.upper().startswith("COMMIT"):
            self._note()
        return super().execute(Watched.rewrite(statement), *more)

    def commit(self) -> None:
        self._note()
        super().commit()

    def _note(self) -> None:
        if Watched.fails and self.total_changes > self._changes:
            raise sqlite3.OperationalError("disk I/O error")
        if self.total_changes > self._changes:
            Watched.flushes[super().execute("PRAGMA synchronous").fetchone()[0]] += 1
        self._changes = self.total_changes


@pytest.fixture(autouse=True)
def watched(monkeypatch: Patch) -> None:
    """Each connection to SQLite that is made from now on is a watched one."""
    connect = sqlite3.dbapi2.connect
    monkeypatch.setattr(Watched, "flushes", Counter())
    monkeypatch.setattr(Watched, "fails", False)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", partial(connect, factory=Watched))


def problems(harness: Harness, study: Study) -> list[str]:
    """Where an acknowledged report is not stored, stored twice, or not flushed."""
    assert harness.publish(study).status_code == 201
    reports = [build_report(study) for _ in range(20)]
    first, second, *rest = reports
    Watched.flushes.clear()
    seen = [harness.put(report).status_code for report in (first, second, first, second)]
    wrong = [f"the statuses are {seen}"] if seen != [201, 201, 200, 200] else []
    batch = [report.to_document() for report in (*rest, first, *rest[:3])]
    taken = harness.post(batch).get_json()
    if (taken["stored"], taken["duplicates"], taken["failed"]) != (len(rest), 4, []):
        wrong.append(f"of the batch {taken['stored']} were stored, {taken['duplicates']} duplicates")
    exported = Counter(report.id for report in harness.exported())
    if exported != Counter(report.id for report in reports):
        wrong.append(f"{sum(exported.values())} rows of {len(reports)} reports")
    counted = harness.summary().get_json()["questions"]["ever"]["n"]
    if counted != len(reports):
        wrong.append(f"the summary counts {counted}")
    if {*Watched.flushes} != {FULL}:
        wrong.append(f"commits were flushed so: {dict(Watched.flushes)}")
    return wrong + unacknowledged(harness, build_report(study))


def unacknowledged(harness: Harness, report: Report) -> list[str]:
    """What is wrong where the commit fails, and where the device sends again."""
    Watched.fails = True
    status = harness.put(report).status_code
    batch = harness.post([report.to_document()]).status_code
    Watched.fails = False
    wrong = [f"a failed commit gives {status} and {batch}"] if min(status, batch) < 500 else []
    again = harness.put(report).status_code
    stored = [row.id for row in harness.exported()].count(report.id)
    return wrong + ([] if (again, stored) == (201, 1) else [f"again: {again}, stored {stored} times"])


def test_a_report_is_stored_once_and_flushed_before_its_receipt(make_harness: Any, study: Study) -> None:
    assert problems(make_harness(), study) == []


def test_a_planted_commit_that_is_not_flushed_is_found(
    make_harness: Any, study: Study, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Watched, "rewrite", partial(re.sub, "synchronous = .*", "synchronous = OFF"))
    assert "commits were flushed so: {0: " in "".join(problems(make_harness(), study))


@pytest.mark.slow
@pytest.mark.needs("gcc")
@pytest.mark.parametrize("power_fails", [False, True], ids=["kill -9", "kill -9 and a loss of power"])
def test_a_server_that_dies_keeps_what_it_acknowledged(
    start_server: Any, study: Study, tmp_path: Path, power_fails: bool
) -> None:
    disk = FailingDisk(tmp_path)
    server = start_server(folder=disk.root, environment=disk.environment)
    server.request("POST", "/v1/studies", study.document)
    reports = [build_report(study) for _ in range(REPORTS)]
    acknowledged: list[str] = []

    def send(report: Report) -> None:
        with suppress(OSError, HTTPException):
            if server.put(report) == 201:
                acknowledged.append(report.id)
        if report is reports[REPORTS // 2]:
            server.kill()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, reports))
    assert REPORTS // 3 <= len(acknowledged) < REPORTS
    if power_fails:
        disk.lose_power()
    again = start_server(folder=disk.root, environment=disk.environment)
    stored = Counter(report.id for report in fetch_reports(Client(again.url, TOKEN), "habits"))
    assert {*stored.values()} == {1}
    assert {*acknowledged} <= stored.keys()
    assert [again.put(report) for report in reports] == [201 - (report.id in stored) for report in reports]
    assert len(list(fetch_reports(Client(again.url, TOKEN), "habits"))) == REPORTS


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_a_restart_of_postgresql_loses_nothing(make_harness: Any, postgresql: Any, study: Study) -> None:
    harness = make_harness(database=postgresql.new_database(), lock_timeout=2)
    devices = replicas.under_load(harness, study, lambda _devices: postgresql.restart("immediate"))
    devices.require_all(harness)


@pytest.mark.slow
@pytest.mark.needs("postgres")
@pytest.mark.parametrize("waits", [True, False], ids=["synchronous", "planted: a replica that falls behind"])
def test_a_failover_loses_nothing(
    make_harness: Any, make_postgresql: Any, study: Study, capsys: pytest.CaptureFixture[str], waits: bool
) -> None:
    primary = make_postgresql()
    standby = make_postgresql(primary=primary)

    def cut(devices: Any) -> None:
        if waits:
            return
        standby.set("primary_conninfo", "host=/nowhere")
        wait_for(lambda: not primary.query("SELECT 1 FROM pg_stat_replication"))
        devices.wait_for(replicas.SENDERS)

    if waits:
        primary.set("synchronous_standby_names", STANDBY)
    url = primary.new_database()
    make(Database(url, 1))
    said = said_at_start(url, capsys)
    assert ("a replica follows PostgreSQL, and may lack the last reports" in said) != waits
    harness, devices = replicas.failed_over(make_harness, primary, standby, study, cut)
    lost = devices.acknowledged - {report.id for report in harness.exported()}
    assert bool(lost) != waits
