"""Let a server's clock be wrong once, so that its database keeps the order in which later reports came.

Attack: The same, once a clock was wrong: the collector: says so where it was more than a day, and puts all
days in order; `ldpkit upkeep` does so at any time, today's too.

Attack: The same, so that reports are deleted years late, or at once: the collector: stores nothing on a day
more than a week before the last upkeep or a year after it, and `ldpkit expire` and stated retention
delete nothing then; on a day that comes more than a week after the upkeep before, and on a database's
first, the server deletes nothing, whoever uploads or starts a worker then
(`tests/collector/test_retention.py`); it names reports of days to come, and `ldpkit upkeep` dates
them today. Known limit: a clock that is less wrong.
"""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest
from sqlalchemy import text

from collector import create_app
from collector.limiter import THROTTLED
from collector.operator.daily import Days
from collector.operator.stated_retention import Kept, delete_overdue
from collector.storage import upkeep
from collector.storage.audit_log import BY_SERVER
from collector.storage.upkeep import Upkeep
from ldp_client.documents.report import report_id_of
from tests.collector.conftest import TOKEN, build_report

REPORTS = 12


@pytest.fixture
def kept(make_harness, postgresql, study):
    harness = make_harness(database=postgresql.new_database(), lock_timeout=10)
    harness.publish(study)
    return harness


def send(harness, study):
    """Reports, the largest id first: never in the order of the ids."""
    reports = sorted((build_report(study) for _ in range(REPORTS)), key=lambda report: report.id)
    assert {harness.put(report).status_code for report in reversed(reports)} == {201}


def days_in_order(harness):
    with harness.collector.database.read() as session:
        rows = session.execute(text("SELECT day, id FROM reports ORDER BY ctid")).all()
    ids = {day: [bytes(row.id) for row in rows if row.day == day] for day, _ in rows}
    return {day for day, found in ids.items() if found == sorted(found)}


@pytest.mark.parametrize("ahead", [1, 6])
def test_order_is_hidden_again_after_clock_was_ahead(kept, study, caplog, ahead):
    right = kept.day
    send(kept, study)
    kept.day = right + timedelta(ahead)
    kept.put(build_report(study))
    kept.day = right
    send(kept, study)
    kept.day += timedelta(1)
    send(kept, study)
    assert days_in_order(kept) >= {right}
    assert ("a clock was wrong" in caplog.text) == (ahead > 1)


def expire(harness, before):
    body = {"before": before.isoformat()}
    return harness.client.post("/v1/studies/habits/expire", json=body, headers=harness.operator)


def test_implausible_clock_stores_nothing(habits, study, caplog, capsys, monkeypatch):
    """Days of a clock that starts in 1970, or years ahead, would decide when reports are deleted."""
    right = habits.day
    assert habits.put(build_report(study)).status_code == 201
    for wrong in (date(1970, 1, 1), right - timedelta(8), right + timedelta(400)):
        habits.day = wrong
        answer = habits.put(build_report(study))
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert "nothing is stored until the clock is right" in caplog.text
    habits.day = right + timedelta(300)
    ahead = build_report(study)
    assert habits.put(ahead).status_code == 201
    habits.day = right
    late = build_report(study)
    assert habits.put(late).status_code == 503
    monkeypatch.setattr(upkeep, "utc_today", lambda: right)
    assert habits.exit_code("upkeep") == habits.exit_code("upkeep", "--date", "2026-06-14") == 3
    assert f"--date {right}" in capsys.readouterr().err
    assert habits.exit_code("upkeep", "--date", right.isoformat()) == 0
    habits.operate("status", "--log")
    assert f"(token)\tupkeep\t\tas of {right}, which the operator stated" in capsys.readouterr().out
    assert habits.put(late).status_code == 201
    habits.day = right + timedelta(1)
    assert expire(habits, habits.day).get_json()["deleted"] == 3
    assert habits.exported() == []


@pytest.mark.parametrize("days", [800, -30])
def test_refused_clock_deletes_nothing(habits, study, capsys, monkeypatch, days):
    """With a clock two years ahead, `expire --before $(date -d -90days)` would delete all reports."""
    assert habits.put(build_report(study)).status_code == 201
    wrong = habits.day = habits.day + timedelta(days)
    monkeypatch.setattr(upkeep, "utc_today", lambda: wrong)
    refused = expire(habits, wrong - timedelta(90))
    assert refused.status_code == 422
    assert f"the clock says {wrong}" in refused.get_json()["detail"]
    assert "nothing was deleted" in refused.get_json()["detail"]
    assert len(habits.exported()) == 1
    assert habits.exit_code("upkeep", "--date", "22.11.2026") == 2
    assert "YYYY-MM-DD" in capsys.readouterr().err
    assert habits.exit_code("upkeep", "--date", wrong.isoformat()) == 0
    assert expire(habits, wrong - timedelta(90)).status_code == 200


@pytest.mark.parametrize("days", [400, -30])
def test_withdrawals_work_with_doubtful_clock(habits, study, caplog, days):
    """Devices and operators can still delete reports, and /readyz still fails, after a quiet year."""
    first, second, late = (build_report(study) for _ in range(3))
    assert {habits.put(report).status_code for report in (first, second)} == {201}
    right = habits.day
    assert habits.client.get("/readyz").status_code == 200
    habits.day = right + timedelta(days)
    assert habits.withdraw(first.id, secret=first.secret).status_code == 200
    assert habits.withdraw(second.id).status_code == 200
    assert habits.withdraw(late.id, secret=late.secret).status_code == 200
    assert habits.put(build_report(study)).status_code == 503
    assert habits.client.get("/readyz").status_code == 503
    with habits.collector.database.read() as session:
        assert set(session.scalars(text("SELECT day FROM reports"))) == {right.isoformat()}
    caplog.clear()
    THROTTLED.forget()
    create_app({"database": f"sqlite:///{habits.path}", "token": TOKEN}, today=lambda: habits.day)
    assert f"the clock says {habits.day}" in caplog.text
    habits.day = right
    assert habits.client.get("/readyz").status_code == 200
    assert habits.exported() == []
    habits.day = right + timedelta(30)
    assert habits.put(build_report(study)).status_code == 201
    assert "see that it is right" in caplog.text


def test_new_collector_in_1970_stores_nothing(habits, study):
    habits.day = date(1970, 1, 1)
    assert habits.put(build_report(study)).status_code == 503


def test_manual_upkeep_orders_all_days(kept, study):
    """This includes today's reports, as the disk may be handed on before more arrive."""
    send(kept, study)
    assert days_in_order(kept) == set()
    Upkeep(kept.collector.database, lambda: kept.day, b"").run(kept.day, even_if_done=True)
    assert days_in_order(kept) == {kept.day}


def test_concurrent_workers_run_upkeep_once(kept):
    """One worker runs the upkeep, and the others find it done."""
    database, day = kept.collector.database, kept.day
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: Upkeep(database, lambda: day, b"").run(day), range(4)))
    assert sum(done) == 1


def upload(harness, study):
    assert harness.put(build_report(study)).status_code == 201


def withdraw_nothing(harness, _study):
    secret = secrets.token_bytes(16)
    harness.withdraw(report_id_of(secret), secret=secret)


def look(harness, _study):
    Days(harness.collector).look()


@pytest.mark.parametrize("before", [upload, withdraw_nothing, look])
def test_clock_ahead_deletes_nothing_on_its_first_day(make_harness, study, make_study, before):
    """An upload or another worker's start must not make that day count as confirmed by an upkeep."""
    harness = make_harness()
    closes = (harness.day + timedelta(19)).isoformat()
    harness.publish(study)
    short = make_study(id="short", closes=closes, retention={"days": 30})
    harness.publish(short)
    upload(harness, short)
    look(harness, study)
    right, find = harness.day, harness.collector.rules.find
    kept = Kept("short", 2, 1, 30, None, date.max, 1, 1)

    def delete():
        return delete_overdue(harness.collector.writer.act, find, kept, harness.day, BY_SERVER)

    harness.day = right + timedelta(100)
    before(harness, study)
    look(harness, study)
    assert delete() == 0
    # Put right, a day to come keeps nobody's reports longer than until tomorrow.
    Upkeep(harness.collector.database, lambda: right, b"").run(right, even_if_done=True)
    harness.day = right
    assert delete() == 0
    harness.day += timedelta(1)
    assert delete() == 1
