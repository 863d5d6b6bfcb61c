"""An acknowledged report is stored exactly once: after kill -9, power loss, a restart and a failover too."""

import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from threading import Event

import pytest

from collector.db import Database
from collector.migrations import make
from ldpkit.cli.client import Client
from ldpkit.cli.exporting import fetch_reports
from tests.kit.collectors import TOKEN, build_report, wait_for
from tests.kit.connections import Watched
from tests.kit.failing_disk import FailingDisk
from tests.kit.operators import said_at_start
from tests.kit.postgresql import STANDBY

FULL = 2
REPORTS = 100
SENDERS = 4
# Uploads that must have been taken before a fault, and after it.
SOME = 40


def check_storing(harness, study):
    """Acknowledged reports are stored and counted once, and each commit is flushed."""
    flushes = Counter()

    def before(connection, statement):
        if statement == "COMMIT":
            flushes[connection.pragma("synchronous")] += 1

    def fail(_connection, statement):
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")

    reports = [build_report(study) for _ in range(20)]
    # Where the commit fails, nothing is acknowledged.
    Watched.before = fail
    for response in (harness.put(reports[0]), harness.post([reports[0].to_document()])):
        assert response.status_code >= 500
    Watched.before = before
    first, second, *rest = reports
    statuses = [harness.put(report).status_code for report in (first, second, first, second)]
    assert statuses == [201, 201, 200, 200]
    taken = harness.post([report.to_document() for report in (*rest, first, *rest[:3])]).get_json()
    assert (taken["stored"], taken["duplicates"], taken["failed"]) == (len(rest), 4, [])
    exported = Counter(report.id for report in harness.exported())
    assert exported == Counter(report.id for report in reports)
    assert harness.summary().get_json()["questions"]["ever"]["n"] == len(reports)
    assert set(flushes) == {FULL}


@pytest.fixture
def harness(watched, make_harness, study):  # noqa: ARG001
    """A collector with a study, whose connections are watched."""
    return make_harness(published=[study])


def test_a_report_is_stored_once_and_flushed_before_its_receipt(harness, study):
    check_storing(harness, study)


def test_a_planted_commit_that_is_not_flushed_is_found(harness, study):
    harness.collector.database.engine.dispose()
    Watched.rewrite = lambda _connection, statement: statement.replace(
        "synchronous = FULL", "synchronous = OFF"
    )
    with pytest.raises(AssertionError):
        check_storing(harness, study)


@pytest.mark.slow
@pytest.mark.needs("gcc")
@pytest.mark.parametrize("power_fails", [False, True], ids=["kill -9", "kill -9 and a loss of power"])
def test_a_server_that_dies_keeps_what_it_acknowledged(start_server, study, tmp_path, power_fails):
    disk = FailingDisk(tmp_path)
    server = start_server(folder=disk.root, environment=disk.environment)
    server.request("POST", "/v1/studies", study.document)
    reports = [build_report(study) for _ in range(REPORTS)]
    acknowledged = []

    def send(report):
        with suppress(OSError, HTTPException):
            if server.put(report) == 201:
                acknowledged.append(report.id)
        if report is reports[REPORTS // 2]:
            server.kill()

    with ThreadPoolExecutor(SENDERS) as pool:
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


def acknowledged_under_load(harness, study, fault):
    """The reports that were acknowledged to devices which send while a fault happens, and again after it.

    fault: is called with a function that waits until so many more were acknowledged.
    """
    assert harness.publish(study).status_code == 201
    acknowledged, stop = set[str](), Event()

    def send():
        report = build_report(study)
        while not stop.is_set():
            response = harness.put(report)
            if response.status_code in (200, 201):
                acknowledged.add(report.id)
                report = build_report(study)
            else:
                assert response.get_json(force=True)["type"] == "urn:ldpkit:problem:unavailable"
                assert int(response.headers["Retry-After"]) > 0
                time.sleep(0.05)

    def wait(count):
        wanted = len(acknowledged) + count
        wait_for(lambda: len(acknowledged) >= wanted)

    with ThreadPoolExecutor(SENDERS) as pool:
        devices = [pool.submit(send) for _ in range(SENDERS)]
        try:
            wait(SOME)
            fault(wait)
            wait(SOME)
        finally:
            stop.set()
        for device in devices:
            device.result()
    return acknowledged


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_a_restart_of_postgresql_loses_nothing(make_harness, postgresql, study):
    harness = make_harness(database=postgresql.new_database(), lock_timeout=2)
    kept = acknowledged_under_load(harness, study, lambda _wait: postgresql.restart("immediate"))
    exported = Counter(report.id for report in harness.exported())
    assert {*exported.values()} == {1}
    assert kept <= exported.keys()
    assert harness.summary().get_json()["questions"]["ever"]["n"] == len(exported)


@pytest.mark.slow
@pytest.mark.needs("postgres")
@pytest.mark.parametrize("waits", [True, False], ids=["synchronous", "planted: a replica that falls behind"])
def test_a_failover_loses_nothing(make_harness, make_postgresql, study, capsys, waits):
    primary = make_postgresql()
    standby = make_postgresql(primary=primary)

    def fail_over(wait):
        if not waits:
            standby.set("primary_conninfo", "host=/nowhere")
            wait_for(lambda: not primary.query("SELECT 1 FROM pg_stat_replication"))
            wait(SENDERS)
        primary.kill()
        standby.promote()

    if waits:
        primary.set("synchronous_standby_names", STANDBY)
    url = primary.new_database()
    make(Database(url, 1))
    said = said_at_start(url, capsys)
    assert ("a replica follows PostgreSQL, and may lack the last reports" in said) != waits
    database = f"{primary.new_database()},{standby.folder}&target_session_attrs=read-write"
    harness = make_harness(database=database, lock_timeout=2)
    lost = acknowledged_under_load(harness, study, fail_over) - {report.id for report in harness.exported()}
    assert bool(lost) != waits
