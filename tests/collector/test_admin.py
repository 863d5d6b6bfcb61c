"""Keys, deletion, recounting and `ldpkit backup`, on SQLite and PostgreSQL."""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import threading
from datetime import timedelta

import pytest
from sqlalchemy import event, text

from collector import create_app
from collector.cli import _serve_settings, add_commands
from collector.operator import retention
from collector.remote.client import RefusalError
from collector.storage import backup
from collector.storage.database import Database
from ldp_client.documents.errors import InputError
from tests.collector.commands import TOKEN, operate, run
from tests.collector.conftest import ensure_database
from tests.collector.postgresql import restore
from tests.kit.deleting import delete_reports
from tests.kit.errors import raises
from tests.kit.programs import need

ROUTES = {
    "publish": [("POST", "/v1/studies"), ("POST", "/v1/studies/habits/close")],
    "read": [("GET", "/v1/studies/habits/export"), ("GET", "/metrics")],
}


@pytest.fixture
def either(make_harness, database_url, study):
    harness = make_harness(database=database_url, lock_timeout=5)
    harness.url = database_url
    harness.publish(study)
    return harness


def make_key(harness, capsys, name, role):
    harness.operate("keys", "add", name, "--role", role)
    return capsys.readouterr().out.strip()


def status(harness, key, method, path):
    return harness.client.open(path, method=method, headers={"Authorization": f"Bearer {key}"}).status_code


@pytest.mark.parametrize("role", ["publish", "read", "operate"])
def test_key_permits_only_its_roles_routes_until_revoked(either, capsys, role):
    key = make_key(either, capsys, "someone", role)
    for needed, routes in ROUTES.items():
        for method, path in routes:
            assert (status(either, key, method, path) == 403) == (role not in (needed, "operate"))
    either.operate("keys")
    used = f"used on {either.day}"
    assert capsys.readouterr().out == f"someone\t{role}\tall studies\tno last day\t{used}\n"
    either.operate("keys", "revoke", "someone", "--yes")
    assert status(either, key, "GET", "/metrics") == 401


def test_only_the_hash_of_a_key_is_stored(either, capsys):
    key = make_key(either, capsys, "someone", "read")
    with either.collector.database.engine.connect() as connection:
        (row,) = connection.execute(text("SELECT name, role, hash FROM keys"))
    assert (row.name, row.role, bytes(row.hash)) == ("someone", "read", hashlib.sha256(key.encode()).digest())
    assert len(key) >= 40


def test_key_names_are_checked(either, capsys):
    make_key(either, capsys, "someone", "read")
    for arguments, code in (
        (("add", "someone", "--role", "read"), ("server.refused", "'someone'")),
        (("add", "Some One", "--role", "read"), ("server.refused", "64")),
        (("revoke", "nobody", "--yes"), ("keys.unknown_name", "'nobody'")),
    ):
        with raises((InputError, RefusalError), code):
            either.operate("keys", *arguments)


def test_studies_are_listed(either, make_study, study, make_report, capsys):
    either.publish(make_study(id="other", opens="2026-07-01"))
    gone = make_report(study)
    either.post([make_report(study).to_document() for _ in range(3)] + [gone.to_document()])
    either.withdraw(gone.id)
    either.close()
    either.operate("status")
    assert capsys.readouterr().out.splitlines() == [
        "habits\tversion 1\tclosed\t3 reports",
        "other\tversion 1\t2026-07-01 to …\t0 reports",
    ]


def test_expire_examines_each_report_once(habits, study, make_report, monkeypatch):
    """Reports that stay are skipped once in all, not once for each batch."""
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 50)
    habits.day += timedelta(1)
    habits.post([make_report(study).to_document() for _ in range(500)])
    habits.day -= timedelta(1)
    habits.post([make_report(study).to_document() for _ in range(500)])
    steps = []

    @event.listens_for(habits.collector.database.engine, "connect")
    def count_steps(connection, _record):
        connection.set_progress_handler(lambda: steps.append(1), 100)

    habits.collector.database.engine.dispose()
    deleted = delete_reports(habits.collector.database, "habits", habits.day + timedelta(1))
    assert deleted == 500
    # Ten batches: about 10,000 steps for 1,000 rows passed once, 30,000 passed again with each batch.
    assert len(steps) < 400


def test_recount_repairs_a_wrong_summary(either, study, make_report, capsys):
    either.post([make_report(study).to_document() for _ in range(7)])
    right = either.summary().text
    with either.collector.database.writing_connection() as connection:
        connection.execute(text("DELETE FROM sums"))
    assert either.summary().text != right
    for said in ("habits\tversion 1\tthe summary was wrong, and is right now\n", "every summary was right\n"):
        # Also where the upkeep would be refused.
        either.day += timedelta(800)
        either.operate("upkeep", "--recount")
        assert capsys.readouterr().out == said
        assert either.summary().text == right


def test_a_deleted_study_keeps_its_id_and_document(either, study, make_study, make_report, capsys):
    report = make_report(study)
    either.put(report)
    with raises(InputError, "options.needs_yes"):
        either.operate("delete", "habits")
    assert either.exported() == [report]
    either.operate("delete", "habits", "--yes")
    assert "1 report of habits deleted" in capsys.readouterr().out
    # As the message says of a deletion that broke off.
    either.operate("delete", "habits", "--yes")
    assert "0 reports of habits deleted" in capsys.readouterr().out
    assert either.exported() == []
    assert either.put(report).status_code == 410
    assert either.client.get("/v1/studies/habits?version=1").data == study.canonical()
    assert either.publish(make_study(version=2)).status_code == 410


@pytest.mark.slow
def test_backup_under_load_is_complete(make_harness, study, make_report, tmp_path):
    harness = make_harness(lock_timeout=20)
    harness.publish(study)
    before = [make_report(study) for _ in range(3000)]
    harness.post([report.to_document() for report in before])
    stop = threading.Event()

    def load():
        while not stop.is_set():
            assert harness.post([make_report(study).to_document() for _ in range(20)]).status_code == 200

    loader = threading.Thread(target=load)
    loader.start()
    try:
        run("backup", "--out", str(tmp_path / "copy.sqlite3"), "--database", f"sqlite:///{harness.path}")
    finally:
        stop.set()
        loader.join()
    copy = make_harness("copy.sqlite3")
    assert {report.id for report in before} <= {report.id for report in copy.exported()}
    assert sorted(file.name for file in tmp_path.glob(".ldpkit*")) == []


@pytest.mark.parametrize("links", [True, False])
def test_backup_does_not_overwrite_an_existing_file(links, habits, tmp_path, monkeypatch):
    """The backup is readable by its owner only, also on file systems without links."""

    def refuse(_source, _target):
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(backup.os, "link", refuse)
    copy = tmp_path / "copy.sqlite3"
    command = ["backup", "--out", str(copy), "--database", f"sqlite:///{habits.path}"]
    run(*command)
    assert copy.stat().st_mode & 0o077 == 0
    before = copy.read_bytes()
    with raises(InputError, "backup.file_exists"):
        run(*command)
    assert copy.read_bytes() == before
    assert sorted(file.name for file in tmp_path.glob(".ldpkit*")) == []


def test_damaged_dump_is_detected(make_harness, postgresql, study, make_report, tmp_path, monkeypatch):
    harness = make_harness(database=postgresql.new_database())
    harness.publish(study)
    harness.post([make_report(study).to_document() for _ in range(5)])
    genuine = backup._rows_of

    def cut(path, tables):
        dump = path.read_bytes()
        # In the middle of the last table's rows: their end is a line of its own.
        path.write_bytes(dump[: dump.rindex(b"\\.\n") // 2])
        return genuine(path, tables)

    monkeypatch.setattr(backup, "_rows_of", cut)
    with raises(InputError, "backup.dump_damaged"):
        backup.back_up(harness.collector.database, tmp_path / "copy.sql")
    assert not (tmp_path / "copy.sql").exists()


def test_backup_contains_no_withdrawn_report(habits, study, make_report, tmp_path):
    report = make_report(study, payloads={"hours": b"\x11\x5a\xc3\x77", "fruit": b"\5", "ever": b"\1"})
    habits.put(report)
    habits.withdraw(report.id)
    copy = tmp_path / "copy.sqlite3"
    run("backup", "--out", str(copy), "--database", f"sqlite:///{habits.path}")
    assert report.payloads["hours"] not in copy.read_bytes()


def test_a_backup_of_postgresql_restores(make_harness, postgresql, study, make_report, tmp_path):
    source, target = postgresql.new_database(), postgresql.new_database()
    harness = make_harness(database=source)
    harness.publish(study)
    reports = sorted((make_report(study) for _ in range(50)), key=lambda report: report.id)
    harness.post([report.to_document() for report in reports])
    dump = tmp_path / "copy.dump"
    run("backup", "--out", str(dump), "--database", source)
    restore(dump, target)
    assert make_harness(database=target).exported() == reports


def test_postgresql_backup_restores_without_its_roles(make_harness, postgresql, study, make_report, tmp_path):
    """Neither the owner nor a role with read access exists there; the restoring role owns everything."""
    source, target = postgresql.new_database(), postgresql.new_database("keeper")
    harness = make_harness(database=source)
    harness.publish(study)
    report = make_report(study)
    harness.put(report)
    with harness.collector.database.writing_connection() as connection:
        connection.exec_driver_sql("CREATE ROLE reader")
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    dump = tmp_path / "copy.sql"
    run("backup", "--out", str(dump), "--database", source)
    with harness.collector.database.writing_connection() as connection:
        connection.exec_driver_sql("DROP OWNED BY reader")
        connection.exec_driver_sql("DROP ROLE reader")
    restore(dump, target)
    restored = make_harness(database=target)
    assert restored.exported() == [report]
    assert restored.put(make_report(study)).status_code == 201


def test_backup_uses_the_collectors_connection_options(postgresql, tmp_path):
    """pg_dump gets every option of the URL, TLS options for example."""
    url = postgresql.new_database() + "&options=-crole%3Dnosuch"
    with raises(InputError, "database.unreachable", 'role "nosuch"'):
        run("backup", "--out", str(tmp_path / "copy"), "--database", url)


def test_password_is_not_passed_to_pg_dump_as_argument(monkeypatch):
    need("postgres")
    seen = {}

    def run_nothing(command, env, **_options):
        seen.update(command=command, env=env)
        return subprocess.CompletedProcess(command, 1, "", "refused")

    monkeypatch.setattr(backup.subprocess, "run", run_nothing)
    for url in ("me:secret@host/name?sslmode=require", "me@host/name?password=secret&sslmode=require"):
        with raises(InputError, "backup.pg_dump_failed", "refused"):
            backup._pg_dump(Database(f"postgresql://{url}", 1).url, io.BytesIO())
        assert "secret" not in " ".join(seen["command"])
        assert seen["env"]["PGPASSWORD"] == "secret"
        assert "sslmode=require" in " ".join(seen["command"])
    seen.clear()
    with raises(InputError, "backup.password_exposed") as refused:
        backup._pg_dump(Database("postgresql://me@host/name?sslpassword=secret", 1).url, io.BytesIO())
    assert (seen, "secret" in str(refused.value)) == ({}, False)


def test_failed_backup_leaves_no_file(tmp_path, postgresql):
    with raises(InputError, "database.missing_file"):
        run("backup", "--out", str(tmp_path / "copy"), "--database", f"sqlite:///{tmp_path / 'nosuch'}")
    (tmp_path / "text").write_text("not a database, only a long enough text " * 100)
    with pytest.raises(InputError, match="file is not a database"):
        run("backup", "--out", str(tmp_path / "copy"), "--database", f"sqlite:///{tmp_path / 'text'}")
    with raises(InputError, "backup.folder_missing"):
        run("backup", "--out", str(tmp_path / "no" / "copy"), "--database", f"sqlite:///{tmp_path / 'text'}")
    with raises(InputError, "database.unreachable", 'database "no'):
        run(
            "backup",
            "--out",
            str(tmp_path / "copy"),
            "--database",
            postgresql.new_database().replace("/coll", "/no"),
        )
    assert [file.name for file in tmp_path.iterdir()] == ["text"]


def test_token_is_created_only_without_an_operator_key(database_url, capsys, monkeypatch):
    """Otherwise each start would write an operator's token into the log."""
    monkeypatch.delenv("LDPKIT_TOKEN", raising=False)
    ensure_database(database_url)
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers(required=True))
    serve = parser.parse_args(["serve", "--database", database_url])
    app = create_app({"database": database_url, "token": TOKEN})
    operate(app, "keys", "add", "reader", "--role", "read")
    capsys.readouterr()
    made = _serve_settings(serve).token
    assert made
    assert f"operator's token: {made}" in capsys.readouterr().err
    operate(app, "keys", "add", "chief", "--role", "operate")
    capsys.readouterr()
    assert _serve_settings(serve).token is None
    assert "no token is set" in capsys.readouterr().err
