"""The daily upkeep, its retries, and clocks that are wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select, text

from collector import clock, daily
from collector.daily import LOOK_SECONDS, RETRY_SECONDS, UnfinishedError, Upkeep
from collector.models import UpkeepRow
from collector.retention import delete_study
from tests.kit.collectors import build_report

SAID = "the daily upkeep failed"
KEY = "the key of this place"


def test_failed_upkeep_is_tried_again_each_hour(habits, study, make_report, monkeypatch, caplog):
    """Uploads are still accepted meanwhile."""
    now, tried = [0.0], []

    def fail(_database):
        tried.append(now[0])
        raise UnfinishedError("no room")

    monkeypatch.setattr(daily, "rewrite_files", fail)
    upkeep = daily.Upkeep(habits.collector.database, lambda: habits.day, b"", lambda: now[0])
    for _ in range(60):
        upkeep.run_if_due()
        now[0] += RETRY_SECONDS / 20
    assert len(tried) == caplog.text.count(SAID) == 3
    assert habits.put(make_report(study)).status_code == 201


@pytest.fixture
def ordered(make_harness, postgresql, study):
    harness = make_harness(database=postgresql.new_database(), lock_timeout=10)
    harness.publish(study)
    return harness


REPORTS = 12


def send(harness, study):
    """Reports, the largest id first: never in the order of the ids."""
    reports = sorted((build_report(study) for _ in range(REPORTS)), key=lambda report: report.id)
    assert {harness.put(report).status_code for report in reversed(reports)} == {201}


def days_in_order(harness):
    with harness.collector.database.read() as session:
        rows = session.execute(text("SELECT day, id FROM reports ORDER BY ctid")).all()
    ids = {day: [bytes(row.id) for row in rows if row.day == day] for day, _ in rows}
    return {day for day, found in ids.items() if found == sorted(found)}


@pytest.mark.attack(12)
def test_order_is_hidden_again_after_clock_was_ahead(ordered, study, caplog):
    """A clock was ahead once: the order in which later reports came must be hidden nevertheless."""
    right = ordered.day
    send(ordered, study)
    ordered.day = right + timedelta(6)
    ordered.put(build_report(study))
    ordered.day = right
    send(ordered, study)
    ordered.day += timedelta(1)
    send(ordered, study)
    assert days_in_order(ordered) >= {right}
    assert "a clock was wrong" in caplog.text
    # By hand also today's, as the disk may be handed on before more arrive.
    Upkeep(ordered.collector.database, lambda: ordered.day, b"").run(ordered.day, even_if_done=True)
    assert days_in_order(ordered) == {right, ordered.day}


@pytest.mark.attack(12)
def test_order_is_erased_when_a_study_closes(ordered, study):
    """A small study closes on its only day: the order in which its reports came must not wait for a day."""
    send(ordered, study)
    upkeep = Upkeep(ordered.collector.database, lambda: ordered.day, b"")
    assert not upkeep.run(ordered.day)
    assert days_in_order(ordered) == set()
    assert ordered.close().status_code == 200
    assert upkeep.run(ordered.day)
    assert days_in_order(ordered) == {ordered.day}
    assert not upkeep.run(ordered.day)


@pytest.mark.attack(11)
def test_upkeep_after_deletion_of_study_is_due(ordered, study):
    """An upkeep runs while a study is deleted: the bytes of its reports must not stay in the files."""
    send(ordered, study)
    upkeep, ran = Upkeep(ordered.collector.database, lambda: ordered.day, b""), []
    upkeep.run(ordered.day)

    def act(change):
        result = ordered.collector.writer.act(change)
        ran.append(upkeep.run(ordered.day))
        return result

    assert delete_study(act, ordered.collector.rules.find, "habits", "ann")
    assert ran[0]
    assert ran[-1]


@pytest.mark.attack(12)
def test_server_looks_for_closed_studies_each_minute(habits, study, monkeypatch):
    """Other processes of the server may have closed the study."""
    now, rewritten = [0.0], []
    monkeypatch.setattr(daily, "rewrite_files", rewritten.append)
    upkeep = Upkeep(habits.collector.database, lambda: habits.day, b"", lambda: now[0])
    habits.put(build_report(study))
    upkeep.run_if_due()
    rewritten.clear()
    habits.close()
    upkeep.run_if_due()
    assert not rewritten
    now[0] += LOOK_SECONDS
    upkeep.run_if_due()
    upkeep.run_if_due()
    assert len(rewritten) == 1


def expire(harness, before):
    body = {"before": before.isoformat()}
    return harness.client.post("/v1/studies/habits/expire", json=body, headers=harness.operator)


@pytest.mark.attack(11)
def test_implausible_clock_stores_nothing(habits, study, caplog, capsys, monkeypatch):
    """Set a server's clock years off: days that decide when reports are deleted must not be stored."""
    right = habits.day
    assert habits.put(build_report(study)).status_code == 201
    for wrong in (date(1970, 1, 1), right - timedelta(8), right + timedelta(32)):
        habits.day = wrong
        answer = habits.put(build_report(study))
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
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


@pytest.mark.attack(19)
def test_refused_clock_deletes_nothing(habits, study, monkeypatch):
    """Set the clock two years ahead and expire by it: nothing is deleted until an operator states the day."""
    assert habits.put(build_report(study)).status_code == 201
    wrong = habits.day = habits.day + timedelta(800)
    monkeypatch.setattr(clock, "utc_today", lambda: wrong)
    refused = expire(habits, wrong - timedelta(90))
    assert refused.status_code == 422
    assert f"the clock says {wrong}" in refused.get_json()["detail"]
    assert len(habits.exported()) == 1
    assert habits.upkeep(date="22.11.2026").status_code == 422
    assert habits.upkeep(date=wrong.isoformat()).status_code == 200
    assert expire(habits, wrong - timedelta(90)).status_code == 200


@pytest.mark.attack(11)
@pytest.mark.parametrize("days", [400, -30])
def test_withdrawals_work_with_doubtful_clock(habits, study, days):
    """A device withdraws while the server doubts its clock: the withdrawal must still take effect."""
    first, second, late = (build_report(study) for _ in range(3))
    assert {habits.put(report).status_code for report in (first, second)} == {201}
    right = habits.day
    habits.day = right + timedelta(days)
    assert habits.withdraw(first.id, secret=first.secret).status_code == 200
    assert habits.withdraw(second.id).status_code == 200
    assert habits.withdraw(late.id, secret=late.secret).status_code == 200
    assert habits.put(build_report(study)).status_code == 503
    assert habits.client.get("/readyz").status_code == 503
    with habits.collector.database.read() as session:
        assert set(session.scalars(text("SELECT day FROM reports"))) == {right.isoformat()}
    habits.day = right
    assert habits.client.get("/readyz").status_code == 200
    assert habits.exported() == []


def test_concurrent_workers_run_upkeep_once(ordered):
    """One worker runs the upkeep, and the others find it done."""
    database, day = ordered.collector.database, ordered.day
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: Upkeep(database, lambda: day, b"").run(day), range(4)))
    assert sum(done) == 1


@pytest.fixture
def kept(make_harness, study):
    harness = make_harness(ticket_key=KEY, lock_timeout=0.3)
    harness.publish(study)
    return harness


ROWS = 20


def arrived(harness, study):
    reports = [build_report(study) for _ in range(ROWS)]
    assert {harness.put(report).status_code for report in reports} == {201}
    return reports


def files_of(harness):
    """The bytes of a database's file and log."""
    return b"".join(file.read_bytes() for file in (harness.path, Path(f"{harness.path}-wal")))


def upkeep_of(harness):
    return Upkeep(harness.collector.database, lambda: harness.day, KEY.encode(), lambda: 0.0)


@pytest.mark.attack(12)
def test_day_with_an_open_reader_is_not_done(kept, study):
    """A backup reads while the upkeep runs: the old rows stay, so that the day must not count as done."""
    reports = arrived(kept, study)
    kept.day += timedelta(1)
    engine = create_engine(kept.collector.database.url, isolation_level="SERIALIZABLE")
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        connection.execute(text("SELECT count(*) FROM studies")).scalar_one()
        upkeep_of(kept).run_if_due()
        refused = kept.upkeep()
    engine.dispose()
    assert refused.status_code == 503
    assert "the files still have the order in which reports came" in refused.get_json()["detail"]
    with kept.collector.database.read() as session:
        assert session.scalar(select(UpkeepRow.day)) < kept.day
    upkeep_of(kept).run_if_due()
    assert {files_of(kept).count(bytes.fromhex(report.id)) for report in reports} == {1}
