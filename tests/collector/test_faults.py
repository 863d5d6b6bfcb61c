"""Faults around a request: bodies, routes, locks, disks. None of them causes a 500."""

from __future__ import annotations

import io
import shutil
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import text

from collector.reports import intake


def kind_of(response):
    assert response.content_type == "application/problem+json"
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


def send(harness, body, **options):
    options.setdefault("content_type", "application/json")
    return harness.client.put(f"/v1/studies/habits/reports/{'0' * 32}", data=body, **options)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b'{"id": 1, "id": 2}', (b"[" + b" " * 8) * 100_000, b"1" * 10_000],
    ids=["empty", "cut", "not UTF-8", "duplicate key", "deep", "huge number"],
)
def test_malformed_json_is_400(habits, body):
    assert kind_of(send(habits, body)) == (400, "malformed-json")


@pytest.mark.parametrize("body", [b"null", b"[]", b"{}", b"NaN", b'{"id": "\\ud800", "\\ud800": 1}'])
def test_json_that_is_not_a_report_is_422(habits, body):
    assert kind_of(send(habits, body)) == (422, "report-invalid")


def test_another_media_type_is_415(habits):
    assert kind_of(send(habits, b"{}", content_type="text/plain")) == (415, "media-type-unsupported")
    encoded = send(habits, b"{}", headers={"Content-Encoding": "br"})
    assert kind_of(encoded) == (415, "media-type-unsupported")


def test_a_long_body_is_413_by_its_length(make_harness):
    harness = make_harness("small.sqlite3", body_limit=100)
    assert kind_of(send(harness, b"x" * 101)) == (413, "body-too-large")


def test_chunked_body_above_the_limit_is_413(make_harness):
    harness = make_harness("small.sqlite3", body_limit=100)
    response = send(
        harness,
        None,
        input_stream=io.BytesIO(b" " * 1000),
        headers={"Transfer-Encoding": "chunked"},
        environ_overrides={"wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
    )
    assert kind_of(response) == (413, "body-too-large")


def test_a_study_has_its_own_limit(empty):
    body = b'"' + b"x" * (1 << 20) + b'"'
    response = empty.client.post(
        "/v1/studies", data=body, content_type="application/json", headers=empty.operator
    )
    assert kind_of(response) == (413, "body-too-large")


def test_unknown_routes_and_methods(empty):
    assert kind_of(empty.client.get("/nothing")) == (404, "not-found")
    response = empty.client.delete("/v1/studies")
    assert kind_of(response) == (405, "method-not-allowed")
    assert "POST" in response.headers["Allow"]


def test_internal_error_is_500_and_logs_no_report_id(habits, study, make_report, monkeypatch, caplog):
    def broken(*_arguments):
        raise RuntimeError("defect")

    monkeypatch.setattr(intake, "check", broken)
    report = make_report(study)
    assert kind_of(habits.put(report)) == (500, "internal")
    assert "defect" in caplog.text
    assert report.id not in caplog.text


def test_health(empty):
    assert empty.client.get("/healthz").status_code == 200
    assert empty.client.get("/readyz").status_code == 200


def test_connections_are_durable(empty):
    expected = {
        "journal_mode": "wal",
        "synchronous": 2,
        "busy_timeout": 200,
        "wal_autocheckpoint": 20_000,
        "foreign_keys": 1,
    }
    with empty.app.extensions["ldpkit"].database.engine.connect() as connection:
        found = {name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in expected}
    assert found == expected


def test_reports_table_has_no_rowid(habits):
    with closing(sqlite3.connect(habits.path)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT rowid FROM reports")


def test_a_locked_database_is_503_and_recovers(habits, study, make_report):
    report = make_report(study)
    with closing(sqlite3.connect(habits.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for response in (habits.put(report), habits.post([report.to_document()]), habits.close()):
            assert kind_of(response) == (503, "unavailable")
            assert int(response.headers["Retry-After"]) > 0
        assert habits.client.get("/healthz").status_code == 200
        assert kind_of(habits.client.get("/readyz")) == (503, "unavailable")
        other.execute("ROLLBACK")
    # No other write comes first: a load balancer sends nothing to a server that is not ready.
    assert habits.client.get("/readyz").status_code == 200
    assert habits.put(report).status_code == 201


def test_lock_during_connection_is_503(habits, study, make_report):
    engine = habits.app.extensions["ldpkit"].database.engine
    engine.dispose()
    with closing(sqlite3.connect(habits.path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert kind_of(habits.put(make_report(study))) == (503, "unavailable")
        assert kind_of(habits.client.get("/readyz")) == (503, "unavailable")


def fill_disk(harness):
    """Forbid SQLite to grow the file of every connection that is open or opened later."""
    engine = harness.app.extensions["ldpkit"].database.engine
    with engine.connect() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar()
        connection.execute(text(f"PRAGMA max_page_count = {pages}"))


def test_full_disk_is_507_and_keeps_acknowledged_reports(habits, study, make_report):
    fill_disk(habits)
    acknowledged = []
    response = None
    for _ in range(100):
        reports = [make_report(study) for _ in range(50)]
        response = habits.post([report.to_document() for report in reports])
        if response.status_code != 200:
            break
        acknowledged += reports
    assert kind_of(response) == (507, "disk-full")
    assert int(response.headers["Retry-After"]) > 0
    assert sorted(report.id for report in acknowledged) == [report.id for report in habits.exported()]
    with habits.app.extensions["ldpkit"].database.engine.connect() as connection:
        connection.execute(text("PRAGMA max_page_count = 100000"))
    assert habits.put(make_report(study)).status_code == 201


def test_lost_database_is_503(habits, study, make_report, tmp_path):
    harness = habits
    harness.app.extensions["ldpkit"].database.engine.dispose()
    for file in tmp_path.glob("collector.sqlite3*"):
        file.unlink()
    (tmp_path / "collector.sqlite3").mkdir()
    assert kind_of(harness.put(make_report(study))) == (503, "unavailable")
    assert kind_of(harness.client.get("/v1/studies/habits")) == (503, "unavailable")
    assert kind_of(harness.export()) == (503, "unavailable")
    shutil.rmtree(tmp_path / "collector.sqlite3")
