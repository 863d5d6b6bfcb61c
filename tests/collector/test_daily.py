"""The daily upkeep, its retries, and clocks that are wrong."""

import sqlite3
from contextlib import closing
from datetime import date, timedelta

import pytest

from collector import clock, daily
from collector.daily import LOOK_SECONDS, RETRY_SECONDS, UnfinishedError, Upkeep, rewrite_files
from collector.retention import delete_study
from tests.kit.collectors import build_report
from tests.kit.errors import raises


def test_failed_upkeep_is_tried_again_each_hour(habits, study, monkeypatch, caplog):
    """Uploads are still accepted meanwhile."""
    now, tried = [0.0], []

    def fail(_database):
        tried.append(now[0])
        raise UnfinishedError("no room")

    monkeypatch.setattr(daily, "rewrite_files", fail)
    upkeep = Upkeep(habits.collector.database, lambda: habits.day, b"", lambda: now[0])
    for _ in range(60):
        upkeep.run_if_due()
        now[0] += RETRY_SECONDS / 20
    assert len(tried) == caplog.text.count("the daily upkeep failed") == 3
    assert habits.put(build_report(study)).status_code == 201


def send(harness, study):
    """Reports, the largest id first: never in the order of the ids."""
    reports = sorted((build_report(study) for _ in range(12)), key=lambda report: report.id)
    assert {harness.put(report).status_code for report in reversed(reports)} == {201}


def upkeep_of(harness, clock=lambda: 0.0):
    return Upkeep(harness.collector.database, lambda: harness.day, b"", clock)


def days_in_order(harness):
    rows = harness.sql("SELECT day, id FROM reports ORDER BY ctid")
    ids = {day: [bytes(row.id) for row in rows if row.day == day] for day, _ in rows}
    return {day for day, found in ids.items() if found == sorted(found)}


@pytest.mark.attack(12)
def test_order_is_hidden_again_after_clock_was_ahead(elephant, study, caplog):
    """A clock was ahead once: the order in which later reports came must be hidden nevertheless."""
    right = elephant.day
    send(elephant, study)
    elephant.day = right + timedelta(6)
    elephant.put(build_report(study))
    elephant.day = right
    send(elephant, study)
    elephant.day += timedelta(1)
    send(elephant, study)
    assert days_in_order(elephant) >= {right}
    assert "a clock was wrong" in caplog.text
    # By hand also today's, as the disk may be handed on before more arrive.
    upkeep_of(elephant).run(elephant.day, even_if_done=True)
    assert days_in_order(elephant) == {right, elephant.day}


@pytest.mark.attack(12)
def test_order_is_erased_when_a_study_closes(elephant, study):
    """A small study closes on its only day: the order in which its reports came must not wait for a day.

    Other processes of the server may have closed it.
    """
    now = [0.0]
    send(elephant, study)
    upkeep = upkeep_of(elephant, lambda: now[0])
    upkeep.run_if_due()
    assert elephant.close().status_code == 200
    upkeep.run_if_due()
    assert days_in_order(elephant) == set()
    now[0] += LOOK_SECONDS
    upkeep.run_if_due()
    assert days_in_order(elephant) == {elephant.day}
    assert not upkeep.run(elephant.day)


@pytest.mark.attack(11)
def test_upkeep_after_deletion_of_study_is_due(elephant, study):
    """An upkeep runs while a study is deleted: the bytes of its reports must not stay in the files."""
    send(elephant, study)
    upkeep, ran = upkeep_of(elephant), []
    upkeep.run(elephant.day)

    def act(change):
        result = elephant.collector.writer.act(change)
        ran.append(upkeep.run(elephant.day))
        return result

    assert delete_study(act, elephant.collector.rules.find, "habits", "ann")
    assert ran[0]
    assert ran[-1]


def expire(harness, before):
    body = {"before": before.isoformat()}
    return harness.client.post("/v1/studies/habits/expire", json=body, headers=harness.operator)


@pytest.mark.attack(11)
def test_implausible_clock_stores_and_deletes_nothing(habits, study, caplog, capsys, monkeypatch):
    """Set a server's clock years off: no day of a report is stored, and none expires."""
    right = habits.day
    assert habits.put(build_report(study)).status_code == 201
    for wrong in (date(1970, 1, 1), right - timedelta(8), right + timedelta(32)):
        habits.day = wrong
        answer = habits.put(build_report(study))
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        assert f"the clock says {wrong}" in expire(habits, wrong - timedelta(1)).get_json()["detail"]
    assert len(habits.exported()) == 1
    assert "nothing is stored until the clock is right" in caplog.text
    habits.day = right + timedelta(30)
    ahead = build_report(study)
    assert habits.put(ahead).status_code == 201
    habits.day = right
    late = build_report(study)
    assert habits.put(late).status_code == 503
    monkeypatch.setattr(clock, "utc_today", lambda: right)
    for body in ({}, {"date": "2026-06-14"}):
        refused = habits.upkeep(**body)
        assert refused.status_code == 422
        assert right.isoformat() in refused.get_json()["detail"]
    assert habits.upkeep(date=right.isoformat()).status_code == 200
    habits.operate("status", "--log")
    assert f"(token)\tupkeep\t\tas of {right}, which the operator stated" in capsys.readouterr().out
    assert habits.put(late).status_code == 201
    habits.day = right + timedelta(1)
    assert expire(habits, habits.day).get_json()["deleted"] == 3
    assert habits.exported() == []


@pytest.mark.attack(11)
def test_withdrawals_work_with_doubtful_clock(habits, study):
    """A device withdraws while the server doubts its clock: the withdrawal must still take effect."""
    first, second, late = (build_report(study) for _ in range(3))
    assert {habits.put(report).status_code for report in (first, second)} == {201}
    right = habits.day
    habits.day = right + timedelta(400)
    assert habits.withdraw(first.id, secret=first.secret).status_code == 200
    assert habits.withdraw(second.id).status_code == 200
    assert habits.withdraw(late.id, secret=late.secret).status_code == 200
    assert habits.put(build_report(study)).status_code == 503
    assert habits.client.get("/readyz").status_code == 503
    assert {row.day for row in habits.sql("SELECT day FROM reports")} == {right.isoformat()}
    habits.day = right
    assert habits.client.get("/readyz").status_code == 200
    assert habits.exported() == []


@pytest.mark.attack(12)
def test_day_with_an_open_reader_is_not_done(make_harness, study):
    """A backup reads while the upkeep runs: the old rows stay, so that the day must not count as done."""
    harness = make_harness(lock_timeout=0.3, published=[study])
    reports = [build_report(study) for _ in range(20)]
    assert {harness.put(report).status_code for report in reports} == {201}
    harness.day += timedelta(1)
    with closing(sqlite3.connect(harness.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM studies").fetchone()
        upkeep_of(harness).run_if_due()
        refused = harness.upkeep()
        reader.execute("ROLLBACK")
        reader.execute("BEGIN IMMEDIATE")
        with raises(UnfinishedError, "database.order_in_files", "database is locked"):
            rewrite_files(harness.collector.database)
    assert refused.status_code == 503
    assert "the files still have the order in which reports came" in refused.get_json()["detail"]
    assert harness.sql("SELECT day FROM upkeep")[0].day < harness.day.isoformat()
    upkeep_of(harness).run_if_due()
    content = harness.stored_bytes()
    assert {content.count(bytes.fromhex(report.id)) for report in reports} == {1}


@pytest.mark.attack(12)
def test_upkeep_fails_for_role_without_vacuum_right(make_harness, postgresql):
    """PostgreSQL only warns where a role may not rewrite tables; the upkeep must fail."""
    database = make_harness(database=postgresql.new_database()).collector.database
    with database.writing_connection() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS guest")
        connection.exec_driver_sql("CREATE ROLE guest LOGIN")
        connection.exec_driver_sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO guest")
    guest = type(database)(database.url.set(username="guest").render_as_string(), 1)
    with raises(UnfinishedError, "database.order_in_files", "vacuum"):
        rewrite_files(guest)
    guest.engine.dispose()


@pytest.mark.attack(12)
def test_rows_that_a_reader_of_postgresql_still_sees_are_not_done(elephant, study, monkeypatch):
    """A backup holds a snapshot while the upkeep rewrites the tables, which would copy the old rows."""
    monkeypatch.setattr(daily, "WAIT_SECONDS", 0.2)
    send(elephant, study)
    database = elephant.collector.database
    with database.engine.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        reader.exec_driver_sql("SELECT 1")
        elephant.sql("DELETE FROM reports")
        with raises(UnfinishedError, "database.order_in_files", "still reads old rows"):
            rewrite_files(database)
    monkeypatch.undo()
    rewrite_files(database)
