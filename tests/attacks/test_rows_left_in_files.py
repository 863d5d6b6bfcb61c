"""Read in a database's files what the daily upkeep moved or deleted: order of arrival, used invitations.

Defence: The collector: rewrites SQLite's file and every table of PostgreSQL each day, and counts no day
as done while another program reads the old state; the log and `ldpkit upkeep` (exit 5) report this.
Known limit: the disk's own blocks, replicas, PostgreSQL's write-ahead log.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select, text

from collector.operator.inviting import invite
from collector.storage.database import sqlite_file
from collector.storage.models import UpkeepRow
from collector.storage.rewriting import UnfinishedError, rewrite_files
from collector.storage.upkeep import RETRY_SECONDS, Upkeep
from tests.attacks.conftest import KEY
from tests.collector.conftest import build_report
from tests.kit.errors import raises

REPORTS = 40


@pytest.fixture
def kept(make_harness, database_url, study):
    harness = make_harness(database=database_url, invitation_key=KEY, lock_timeout=0.3)
    harness.url = database_url
    harness.publish(study)
    return harness


def arrived(harness, study):
    reports = [build_report(study) for _ in range(REPORTS)]
    assert {harness.put(report).status_code for report in reports} == {201}
    return reports


def files_of(harness, *tables):
    """The bytes of a database's file and log, or of some of PostgreSQL's tables, which has one a study."""
    if harness.url.startswith("sqlite"):
        file = sqlite_file(harness.url)
        return file.read_bytes() + Path(f"{file}-wal").read_bytes()
    with harness.collector.database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as one:
        one.exec_driver_sql("CHECKPOINT")
        read = "SELECT pg_read_binary_file(pg_relation_filepath(:name))"
        return b"".join(bytes(one.execute(text(read), {"name": name}).scalar_one()) for name in tables)


@contextmanager
def another_reader(harness):
    """A backup, or a database browser, in the middle of its transaction."""
    engine = create_engine(harness.collector.database.url, isolation_level="SERIALIZABLE")
    with engine.connect() as connection:
        if harness.url.startswith("sqlite"):
            connection.exec_driver_sql("BEGIN")
        connection.execute(text("SELECT count(*) FROM studies")).scalar_one()
        yield
    engine.dispose()


def upkeep_of(harness, clock=lambda: 0.0):
    return Upkeep(harness.collector.database, lambda: harness.day, KEY.encode(), clock)


@pytest.mark.slow
def test_report_occurs_once_in_files_after_upkeep(kept, study):
    """The copy of the report as it arrived has the number of its transaction."""
    reports = arrived(kept, study)
    kept.day += timedelta(1)
    upkeep_of(kept).run_if_due()
    found = files_of(kept, "reports_1", "reports_1_pkey")
    once = 1 if kept.url.startswith("sqlite") else 2
    assert {found.count(bytes.fromhex(report.id)) for report in reports} == {once}


@pytest.mark.slow
def test_upkeep_removes_invitation_nonces_and_tags_from_files(kept, study):
    """With ldpkit.toml, the nonce gives the key of the tags, and the tags link invitations to reports."""
    database = kept.collector.database
    with database.write() as session:
        words = invite(session, study.id, REPORTS, KEY.encode())
    for word in words:
        report = build_report(study)
        path, headers = f"/v1/studies/{study.id}/reports/{report.id}", {"LDPKit-Invitation": word}
        assert kept.app.test_client().put(path, json=report.to_document(), headers=headers).status_code == 201
    with database.read() as session:
        hidden = [bytes(session.execute(text("SELECT spending FROM studies")).scalar_one())[:16]]
        hidden += [bytes(row.tag) for row in session.execute(text("SELECT tag FROM spent_invitations"))]
    assert len(hidden) == REPORTS + 1
    tables = ("studies", "spent_invitations", "invitations")
    assert all(each in files_of(kept, *tables) for each in hidden)
    kept.day += timedelta(1)
    upkeep_of(kept).run_if_due()
    assert not any(each in files_of(kept, *tables) for each in hidden)


@pytest.mark.slow
def test_upkeep_command_reports_open_reader(kept, study, capsys):
    arrived(kept, study)
    with another_reader(kept):
        assert kept.exit_code("upkeep") == 5
    assert "the files still have the order in which reports came: another program" in capsys.readouterr().err
    assert kept.exit_code("upkeep") == 0


@pytest.mark.slow
def test_restarted_server_retries_upkeep(kept, study, caplog):
    reports = arrived(kept, study)
    kept.day += timedelta(1)
    with another_reader(kept), caplog.at_level(logging.WARNING):
        upkeep_of(kept).run_if_due()
    assert f"the daily upkeep failed, and is tried again in {RETRY_SECONDS:.0f} s" in caplog.text
    with kept.collector.database.read() as session:
        assert session.scalar(select(UpkeepRow.day)) < kept.day
    upkeep_of(kept).run_if_due()
    found = files_of(kept, "reports_1")
    assert {found.count(bytes.fromhex(report.id)) for report in reports} == {1}


def test_upkeep_fails_for_role_without_vacuum_right(make_harness, postgresql):
    """PostgreSQL only warns, and reports success without any change."""
    database = make_harness(database=postgresql.new_database()).collector.database
    with database.writing_connection() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS guest")
        connection.exec_driver_sql("CREATE ROLE guest LOGIN")
        connection.exec_driver_sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO guest")
    guest = type(database)(database.url.set(username="guest").render_as_string(), 1)
    with raises(UnfinishedError, "database.order_in_files", "vacuum"):
        rewrite_files(guest)
    guest.engine.dispose()
