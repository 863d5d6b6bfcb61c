"""The contract of storage, on SQLite and PostgreSQL alike; then the faults of each."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from collector.db import Database
from collector.reports import sums
from collector.settings import Settings
from collector.store import partition_names
from ldp_client.documents.errors import InputError
from ldpkit.cli import serving
from ldpkit.cli.serving import wait_for_database
from summaries import summarize
from tests.kit.answers import delete_study, problem
from tests.kit.collectors import Harness, build_report, build_study, ensure_database
from tests.kit.errors import raises
from tests.kit.operators import run_on, said_at_start


def test_collectors_store_the_same_batches_in_any_order(make_harness, database_url, study, monkeypatch):
    """Four writers, two to a slot of the sums, all making the first rows at once."""
    threads = {}
    monkeypatch.setattr(sums, "_slot", lambda _: threads.setdefault(threading.get_ident(), len(threads)) % 2)
    harnesses = [make_harness(database=database_url, lock_timeout=120) for _ in range(4)]
    harnesses[0].publish(study)
    reports = [build_report(study) for _ in range(300)]
    batch = [report.to_document() for report in reports]
    uploads = [(harnesses[n % 4], batch[:: 1 if n % 3 else -1]) for n in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(Harness.post, harnesses, [batch[n:80:4] for n in range(4)]))
        results = list(pool.map(lambda upload: upload[0].post(upload[1]).get_json(), uploads))
    assert sum(result["stored"] for result in results) == 220
    assert sum(result["duplicates"] for result in results) == 300 * 12 - 220
    assert len(threads) == 4
    assert len(harnesses[1].exported()) == 300
    assert harnesses[2].summary().text == summarize(study, reports).to_json()


def test_a_locked_database_is_503_and_recovers(make_harness, study):
    habits, report = make_harness(lock_timeout=0.2, published=[study]), build_report(study)
    with closing(sqlite3.connect(habits.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for response in (habits.put(report), habits.post([report.to_document()]), habits.close()):
            assert problem(response) == (503, "unavailable")
            assert int(response.headers["Retry-After"]) > 0
        assert habits.client.get("/healthz").status_code == 200
        assert problem(habits.client.get("/readyz")) == (503, "unavailable")
        other.execute("ROLLBACK")
    # No other write comes first: a load balancer sends nothing to a server that is not ready.
    assert habits.client.get("/readyz").status_code == 200
    assert habits.put(report).status_code == 201


def test_full_disk_is_507_and_keeps_acknowledged_reports(habits, study):
    def limit_pages(pages):
        """Forbid SQLite to grow the file beyond so many pages."""
        with habits.collector.database.engine.connect() as connection:
            connection.execute(text(f"PRAGMA max_page_count = {pages}"))

    acknowledged, status, response = [], 200, None
    limit_pages(habits.sql("PRAGMA page_count")[0][0])
    while status == 200:
        reports = [build_report(study) for _ in range(50)]
        response = habits.post([report.to_document() for report in reports])
        status = response.status_code
        acknowledged += reports if status == 200 else []
    assert problem(response) == (507, "disk-full")
    assert int(response.headers["Retry-After"]) > 0
    assert sorted(report.id for report in acknowledged) == [report.id for report in habits.exported()]
    limit_pages(100_000)
    assert habits.put(build_report(study)).status_code == 201


def test_temporarily_missing_tables_are_503(elephant, study):
    """For example while a dump is restored: devices keep their reports, and no traceback is logged."""
    report = build_report(study)
    elephant.sql("ALTER SCHEMA public RENAME TO away")
    found = [problem(elephant.client.get("/readyz")), problem(elephant.put(report))]
    elephant.sql("ALTER SCHEMA away RENAME TO public")
    assert found == [(503, "unavailable")] * 2
    assert elephant.client.get("/readyz").status_code == 200
    assert elephant.put(report).status_code == 201


@pytest.mark.attack(10)
def test_postgresql_commits_synchronously_despite_server_default(make_harness, postgresql):
    """A server's default acknowledges commits before they are flushed; options of the URL are kept."""
    harness = make_harness(database=f"{postgresql.new_database()}&options=-cwork_mem%3D7MB")
    database = harness.collector.database
    harness.sql(f"ALTER DATABASE {database.url.database} SET synchronous_commit = off")
    database.engine.dispose()
    names = ("synchronous_commit", "work_mem", "lock_timeout")
    assert [harness.sql(f"SHOW {name}")[0][0] for name in names] == ["on", "7MB", "5s"]


def test_serve_warns_of_postgresql_that_logs_statements(elephant, capsys):
    """Its log has each report's id and time of arrival."""
    url = elephant.collector.settings.database
    assert "PostgreSQL has" not in said_at_start(url, capsys)
    elephant.sql(f"ALTER DATABASE {elephant.collector.database.url.database} SET log_statement = 'mod'")
    said = said_at_start(url, capsys)
    assert "PostgreSQL has log_statement = mod: it records when each report came" in said


def test_database_that_is_not_utf8_is_refused_in_one_line(postgresql, elsewhere):
    made = "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with postgresql._connect() as connection:
        connection.execute(made)
    url = f"postgresql://postgres@/latin?host={postgresql.folder}"
    for command in (["init", "place", "--database", url], ["migrate"], ["serve"]):
        with raises(InputError, "database.not_utf8", "LATIN1"):
            run_on(url, *command)
    assert not (elsewhere / "place" / "ldpkit.toml").exists()


@pytest.mark.attack(15)
@pytest.mark.parametrize("odd", ["%F0%9F%98%80", "%00", "%ED%A0%80", "habits%0A", "Habits", "x" * 65])
def test_malformed_study_id_never_reaches_the_writer(habits, odd, monkeypatch):
    """Send study ids that no database can store: they are unknown before they share a commit."""
    monkeypatch.setattr(habits.collector.writer, "_run_job", lambda _job: pytest.fail("it was written"))
    for method, path in (("POST", "reports"), ("DELETE", "reports/" + "0" * 32), ("GET", "")):
        address = f"/v1/studies/{odd}/{path}".rstrip("/")
        proof = {"LDPKit-Withdrawal": "0" * 32}
        answer = habits.client.open(address, method=method, json={"reports": []}, headers=proof)
        assert answer.status_code in (403, 404), address
        if answer.status_code == 404:
            assert problem(answer)[1] == "study-unknown"
    page = habits.client.get(f"/s/{odd}")
    assert (page.status_code, page.mimetype) == (404, "text/html")


def test_transaction_ended_by_a_deadlock_is_retried(make_harness, postgresql):
    """Two workers that share one row of sums delete reports of two versions at once."""
    url = postgresql.new_database()
    harnesses = [make_harness(database=url, lock_timeout=10) for _ in range(2)]
    for version in (1, 2):
        harnesses[0].publish(build_study(version))
    both_wait, tries = threading.Barrier(2, timeout=10), [0, 0]
    size = harnesses[0].collector.rules.find("habits", 1).tally.size

    def run(number):
        def add_both(session):
            tries[number] += 1
            sums.add(session, 1, 1 + number, np.ones(size, np.int64))
            if tries[number] == 1:
                both_wait.wait()
            sums.add(session, 1, 2 - number, np.ones(size, np.int64))

        harnesses[number].collector.database.act(add_both)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, range(2), timeout=30))
    # PostgreSQL may end either of them, and on a busy machine both.
    assert max(tries) > 1
    with harnesses[0].collector.database.read() as session:
        assert all((sums.read(session, 1, version, size) == 2).all() for version in (1, 2))


@pytest.mark.attack(15)
def test_only_one_health_check_runs_at_a_time(habits, monkeypatch):
    """Ask for the health of a stuck collector again and again: one look waits, and no more begin."""
    release, looks, long = threading.Event(), [], 60
    database = Database(f"sqlite:///{habits.path}", 1)

    def look(_session):
        looks.append(1)
        release.wait(long)

    monkeypatch.setattr(database, "require_more", look)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(database.require_answer, long)
        while not looks:
            assert not wait([first], 0.01).done
        for _ in range(20):
            with pytest.raises(PoolTimeoutError):
                database.require_answer(0.01)
        release.set()
        first.result(long)
    assert len(looks) == 1
    database.require_answer(long)


@pytest.mark.slow
def test_serve_waits_for_a_database_that_starts_later(make_postgresql, capsys, monkeypatch):
    server = make_postgresql()
    settings = Settings(database=server.new_database(), token="operator-of-the-tests")
    ensure_database(settings.database)
    server.kill()
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _seconds: server.start())
    monkeypatch.setattr(serving, "time", clock)
    wait_for_database(settings)
    assert capsys.readouterr().err.startswith("waiting for the database: ")
    server.kill()
    monkeypatch.setattr(serving, "START_SECONDS", -1)
    with raises(InputError, "database.unreachable"):
        wait_for_database(settings)


def test_each_study_has_one_partition_deleted_under_a_readers_lock(elephant, study):
    """A backup, for example, holds a lock on every table while it runs."""
    others = build_study(id="others")
    elephant.publish(others)
    sent = [build_report(study) for _ in range(5)] + [build_report(others) for _ in range(3)]
    assert {elephant.put(report).status_code for report in sent} == {201}

    def rows():
        names = ("reports_1", "reports_2", "reports")
        return [elephant.sql(f"SELECT count(*) FROM {name}")[0][0] for name in names]

    assert rows() == [5, 3, 8]
    database = Database(elephant.collector.settings.database, 0.5)
    with elephant.collector.database.read() as reader:
        assert partition_names(reader.connection()) == ["reports_1", "reports_2"]
        reader.execute(text("SELECT 1 FROM reports_1")).first()
        assert delete_study(database, "habits") == 5
    database.engine.dispose()
    assert rows() == [0, 3, 3]
    assert elephant.sql("SELECT * FROM sums WHERE study = 1") == []
