"""The disk of a real server loses power or fills up."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from collector.remote.download import fetch_reports
from tests.collector.failing_disk import FailingDisk, SmallDisk

COMMITS = 30
WRITE_THEN_DIE = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA synchronous = FULL")
connection.execute("CREATE TABLE t (n)")
connection.execute("PRAGMA wal_checkpoint(FULL)")
connection.execute("PRAGMA synchronous = " + sys.argv[2])
for number in range(int(sys.argv[3])):
    connection.execute("INSERT INTO t VALUES (?)", (number,))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def disk(tmp_path):
    return FailingDisk(tmp_path)


@pytest.fixture
def start_on_disk(start_server, disk):
    def start():
        return start_server(folder=disk.root, environment=disk.environment)

    return start


def status_of(server, report):
    try:
        return server.put(report)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


@pytest.mark.parametrize(("synchronous", "survives"), [("FULL", True), ("NORMAL", False)])
def test_disk_simulation_separates_durable_from_volatile_writes(disk, synchronous, survives):
    database = disk.root / "t.sqlite3"
    command = [sys.executable, "-c", WRITE_THEN_DIE, str(database), synchronous, str(COMMITS)]
    done = subprocess.run(command, env={**os.environ, **disk.environment}, check=False)
    assert done.returncode == -signal.SIGKILL
    disk.lose_power()
    with closing(sqlite3.connect(database)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM t").fetchone()
    assert (count == COMMITS) == survives


@pytest.mark.slow
def test_power_loss_loses_no_acknowledged_report(start_on_disk, disk, study, make_report, token):
    server = start_on_disk()
    server.request("POST", "/v1/studies", study.document)
    reports = [make_report(study) for _ in range(100)]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(server.put, reports)) == {201}
    server.kill()
    disk.lose_power()
    again = start_on_disk()
    found = {report.id for report in fetch_reports(again.url, "habits", token)}
    assert found == {report.id for report in reports}


@pytest.mark.slow
def test_full_disk_is_507_until_space_is_freed(start_on_disk, disk, study, make_report, token):
    server = start_on_disk()
    server.request("POST", "/v1/studies", study.document)
    before, during, after = (make_report(study) for _ in range(3))
    assert status_of(server, before) == 201
    disk.fill()
    assert [status_of(server, during) for _ in range(3)] == [507] * 3
    assert server.request("GET", "/healthz") == 200
    disk.free()
    assert [status_of(server, report) for report in (during, before, after)] == [201, 200, 201]
    assert len(list(fetch_reports(server.url, "habits", token))) == 3


@pytest.fixture
def small_disk(tmp_path):
    """A real file system that is nearly full; if mounting is forbidden, a disk that rejects writes."""
    try:
        mounted = SmallDisk(tmp_path)
    except (OSError, subprocess.CalledProcessError):
        yield FailingDisk(tmp_path)
        return
    yield mounted
    mounted.remove()


@pytest.mark.slow
def test_a_full_file_system_loses_nothing_acknowledged(start_server, small_disk, study, make_report, token):
    running = start_server(folder=small_disk.root, environment=small_disk.environment)
    running.request("POST", "/v1/studies", study.document)
    reports = [make_report(study) for _ in range(20)]
    taken = {report.id: status_of(running, report) for report in reports[:5]}
    small_disk.fill()
    # What SQLite has allocated already may take some more.
    taken.update((report.id, status_of(running, report)) for report in reports[5:])
    assert set(taken.values()) == {201, 507}
    assert taken[reports[-1].id] == 507
    small_disk.free()
    again = {report.id: status_of(running, report) for report in reports}
    assert again == {name: 200 if status == 201 else 201 for name, status in taken.items()}
    assert {report.id for report in fetch_reports(running.url, "habits", token)} == set(taken)
