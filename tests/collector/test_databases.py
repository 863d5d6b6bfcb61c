"""SQLite and a real PostgreSQL behave alike; PostgreSQL's own faults."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta

import pytest
from sqlalchemy import text

from collector.problems import ProblemError
from collector.secure_sum.node import Node
from collector.storage import queries
from collector.storage.database import Database
from collector.storage.node_keys import NodeKeys
from schemas import Study
from tests.kit.deleting import delete_reports
from tests.kit.errors import raises
from tests.secure_sum.conftest import build_study as summed_study


def problem(response):
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


@pytest.fixture
def either(make_harness, database_url, study):
    harness = make_harness(database=database_url, lock_timeout=5)
    assert harness.publish(study).status_code == 201
    return harness


@pytest.fixture
def elephant(make_harness, postgresql, study):
    harness = make_harness(database=postgresql.new_database(), lock_timeout=2)
    assert harness.publish(study).status_code == 201
    return harness


def test_study_lifecycle(either, study, make_study, make_report):
    first, second, gone = (make_report(study) for _ in range(3))
    assert [either.put(report).status_code for report in (first, second, gone, first)] == [201, 201, 201, 200]
    assert either.publish(study).status_code == 200
    assert problem(either.publish(make_study(title="Other"))) == (409, "study-conflict")
    changed = make_report(study, id=first.id, payloads={**first.payloads, "hours": b"\1\2\3\4"})
    assert problem(either.put(changed)) == (409, "report-conflict")
    assert either.withdraw(gone.id).status_code == 200
    assert problem(either.put(gone)) == (410, "report-withdrawn")
    either.day += timedelta(1)
    late = make_report(study)
    assert either.put(late).status_code == 201
    assert len(either.exported(through="2026-06-15")) == 2
    assert either.close().status_code == 200
    assert problem(either.put(make_report(study))) == (410, "study-closed")
    assert either.put(late).status_code == 200
    assert either.exported() == sorted([first, second, late], key=lambda report: report.id)


def test_id_that_a_database_rejects_is_unknown_and_harmless(either):
    """Otherwise one upload that raises would fail all uploads of its commit."""
    for method, path in (
        ("POST", "reports"),
        ("GET", ""),
        ("GET", "signed"),
        ("DELETE", "reports/" + "0" * 32),
    ):
        address = f"/v1/studies/habits%00/{path}".rstrip("/")
        response = either.client.open(address, method=method, json={"reports": []})
        assert problem(response) == (404, "study-unknown"), address


def test_batch_with_all_kinds_of_members_is_sorted_out(either, study, make_report):
    held, gone, *fresh = (make_report(study) for _ in range(1200))
    either.post([held.to_document(), gone.to_document()])
    either.withdraw(gone.id)
    conflicting = make_report(study, id=held.id, payloads={**held.payloads, "hours": b"\1\2\3\4"})
    batch = [held, conflicting, gone, *fresh, fresh[0]]
    result = either.post([report.to_document() for report in batch]).get_json()
    assert (result["stored"], result["duplicates"]) == (1198, 2)
    assert [entry["type"].rpartition(":")[2] for entry in result["failed"]] == [
        "report-conflict", "report-withdrawn"
    ]  # fmt: skip
    assert len(either.exported()) == 1199


def test_concurrent_copies_are_stored_once(either, study, make_report):
    reports = [make_report(study) for _ in range(20)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda report: either.put(report).status_code, reports * 6))
    assert sorted(statuses) == [200] * 100 + [201] * 20
    assert len(either.exported()) == 20


def test_two_collectors_store_the_same_batches_in_any_order(make_harness, database_url, study, make_report):
    pair = [make_harness(database=database_url, lock_timeout=20) for _ in range(2)]
    pair[0].publish(study)
    reports = [make_report(study).to_document() for _ in range(300)]
    uploads = [(pair[n % 2], reports[:: 1 if n % 3 else -1]) for n in range(12)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda upload: upload[0].post(upload[1]).get_json(), uploads))
    assert sum(result["stored"] for result in results) == 300
    assert sum(result["duplicates"] for result in results) == 300 * 11
    assert len(pair[1].exported()) == 300


def test_uploads_for_several_studies_share_a_commit(either, make_study, make_report):
    studies = [make_study(id=f"study{number}") for number in range(4)]
    for study in studies:
        either.publish(study)
    reports = [make_report(study) for study in studies for _ in range(10)]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda report: either.put(report).status_code, reports)) == {201}


@pytest.mark.slow
def test_killed_postgresql_loses_no_acknowledged_report(elephant, postgresql, study, make_report):
    acknowledged = [make_report(study) for _ in range(10)]
    assert {elephant.put(report).status_code for report in acknowledged} == {201}
    refused = make_report(study)
    postgresql.kill()
    response = elephant.put(refused)
    assert problem(response) == (503, "unavailable")
    assert int(response.headers["Retry-After"]) > 0
    assert problem(elephant.client.get("/readyz")) == (503, "unavailable")
    assert elephant.client.get("/healthz").status_code == 200
    postgresql.start()
    assert elephant.put(refused).status_code == 201
    assert {elephant.put(report).status_code for report in acknowledged} == {200}
    assert len(elephant.exported()) == 11


def test_temporarily_missing_tables_are_503(elephant, study, make_report):
    """For example while a dump is restored: devices keep their reports, and no traceback is logged."""
    report = make_report(study)
    with elephant.collector.database.engine.begin() as other:
        other.execute(text("ALTER SCHEMA public RENAME TO away"))
    found = [problem(elephant.client.get("/readyz")), problem(elephant.put(report))]
    with elephant.collector.database.engine.begin() as other:
        other.execute(text("ALTER SCHEMA away RENAME TO public"))
    assert found == [(503, "unavailable")] * 2
    assert elephant.client.get("/readyz").status_code == 200
    assert elephant.put(report).status_code == 201


def test_postgresql_locked_is_503_and_recovers(make_harness, postgresql, study, make_report):
    harness = make_harness(database=postgresql.new_database(), lock_timeout=0.2)
    harness.publish(study)
    report = make_report(study)
    with harness.collector.database.engine.begin() as other:
        other.execute(text("LOCK TABLE reports IN ACCESS EXCLUSIVE MODE"))
        assert problem(harness.put(report)) == (503, "unavailable")
    assert harness.put(report).status_code == 201


def test_postgresql_commits_synchronously_despite_server_default(make_harness, postgresql):
    url = postgresql.new_database()
    harness = make_harness(database=url)
    with harness.collector.database.engine.begin() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar()
        connection.execute(text(f"ALTER DATABASE {name} SET synchronous_commit = off"))
    harness.collector.database.engine.dispose()
    with harness.collector.database.engine.connect() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"


def test_concurrent_deletion_of_reports_is_harmless(elephant, study, make_report, monkeypatch):
    """An upload that met a report which `expire` then deletes: one of the two waits for the other."""
    report = make_report(study)
    elephant.put(report)
    insert, workers = queries.insert_reports, ThreadPoolExecutor(1)
    deleting = []

    def insert_and_delete(*arguments):
        stored = insert(*arguments)
        database = Database(elephant.collector.settings.database, 20)
        deleting.append(workers.submit(delete_reports, database, "habits"))
        wait(deleting, 0.5)
        return stored

    with monkeypatch.context() as patched:
        patched.setattr(queries, "insert_reports", insert_and_delete)
        assert elephant.put(report).status_code == 200
    assert deleting[0].result(20) == 1
    workers.shutdown()
    assert elephant.exported() == []


def test_racing_publishers_leave_a_node_one_study_version(elephant):
    """Two sums of nearly the same devices would tell them apart."""
    database, keys = elephant.collector.database, NodeKeys.generate()
    node, addresses = Node(keys, database), ["http://a.test#" + keys.fragment, "http://b.test#" + "0" * 128]
    first, second = (Study({**summed_study("ever", nodes=addresses).document, "version": n}) for n in (1, 2))
    with ThreadPoolExecutor(1) as workers:
        with database.write() as session:
            assert node.publish(session, first)
            publishing = workers.submit(database.act, lambda session: node.publish(session, second))
            wait([publishing], 0.5)
        with raises(ProblemError, "study-conflict", "one version alone"):
            publishing.result(20)


def test_options_of_the_url_are_kept(make_harness, postgresql):
    url = postgresql.new_database() + "&options=-cwork_mem%3D7MB"
    with make_harness(database=url).collector.database.engine.connect() as connection:
        shown = [connection.execute(text(f"SHOW {name}")).scalar() for name in ("work_mem", "lock_timeout")]
    assert shown == ["7MB", "200ms"]


def test_two_batches_do_not_deadlock(elephant, study, make_report):
    documents = [make_report(study).to_document() for _ in range(50)]
    orders = [sorted(documents, key=lambda _document: os.urandom(4)) for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        assert {response.status_code for response in pool.map(elephant.post, orders)} == {200}


def test_report_uploaded_after_its_withdrawal_is_rejected(either, study, make_report):
    late = make_report(study)
    for _ in range(2):
        assert either.withdraw(late.id, secret=late.secret).status_code == 200
    assert problem(either.put(late)) == (410, "report-withdrawn")
    assert either.exported() == []
