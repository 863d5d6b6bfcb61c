"""Reports are kept for as long as their study states, and no longer; with them goes what was made of them."""

import secrets
from datetime import date, timedelta

import pytest

from collector import retention
from collector.daily import Days
from collector.retention import Kept, delete_overdue
from ldp_client.documents.errors import InputError
from ldp_client.documents.report import report_id_of
from tests.kit.answers import problem, send_reports
from tests.kit.collectors import build_report, build_study
from tests.kit.errors import raises
from tests.kit.operators import lines


@pytest.fixture
def kept(inviting):
    """A collector that keeps reports 4 days after a study's last day, or after each report's day."""
    closes = (inviting.day + timedelta(2)).isoformat()
    inviting.publish(build_study(id="closing", closes=closes, retention={"days": 4}))
    inviting.publish(build_study(id="rolling", retention={"days": 4}))
    return inviting


A_DAY = timedelta(1)


def reports_by_study(harness):
    harness.collector.studies.forget()
    found = harness.client.get("/v1/studies", headers=harness.operator).get_json()["studies"]
    return {one["id"]: one["reports"] for one in found}


def pass_days(harness, count):
    """The server looks each day, as it does while it runs."""
    days = Days(harness.collector)
    for _ in range(count):
        harness.day += A_DAY
        days.look()


def test_server_deletes_reports_after_their_retention(kept, monkeypatch):
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 2)
    for study_id in ("closing", "rolling", "habits"):
        send_reports(kept, study_id, 3)
    pass_days(kept, 1)
    send_reports(kept, "rolling")
    pass_days(kept, 3)
    assert reports_by_study(kept) == {"closing": 3, "habits": 3, "rolling": 4}
    pass_days(kept, 1)
    # Of the day before one is left; "habits" states nothing.
    assert reports_by_study(kept) == {"closing": 3, "habits": 3, "rolling": 1}
    assert kept.summary("rolling").get_json()["questions"]["ever"]["n"] == 1
    pass_days(kept, 1)
    assert reports_by_study(kept) == {"closing": 3, "habits": 3, "rolling": 0}
    pass_days(kept, 1)
    assert reports_by_study(kept) == {"closing": 0, "habits": 3, "rolling": 0}
    logged = {(entry.key, entry.study, entry.detail) for entry in kept.logged("retention")}
    assert ("(server)", "closing", "version 1, kept for 4 days: 3 reports") in logged
    assert 'ldpkit_reports_deleted_total{by="retention"} 7.0' in kept.metrics()
    assert 'ldpkit_study_reports_overdue{study="closing"} 0.0' in kept.metrics()


def test_report_after_the_end_of_retention_is_410(inviting):
    """Also within `grace_days`: the report would be deleted at once."""
    first = build_study(id="short", closes=inviting.day.isoformat(), retention={"days": 2})
    other = build_study(2, id="short")
    inviting.publish(first)
    sent = build_report(first)
    inviting.day += timedelta(2)
    assert inviting.put(sent).status_code == 201
    inviting.day += A_DAY
    late = inviting.put(build_report(first))
    assert problem(late) == (410, "study-closed")
    # No day brings that back: devices need not send it again.
    assert late.get_json()["final"] is True
    assert inviting.put(sent).status_code == 200
    inviting.publish(other)
    assert [inviting.put(build_report(one)).status_code for one in (first, other)] == [410, 201]


def test_failing_study_does_not_stop_retention_of_others(kept, caplog):
    for study_id in ("closing", "rolling"):
        send_reports(kept, study_id, 3)
    ((right,),) = kept.sql("SELECT sums FROM sums WHERE study = 2")
    kept.sql("UPDATE sums SET sums = :one WHERE study = 2", one=bytes(8))
    pass_days(kept, 8)
    assert reports_by_study(kept) == {"closing": 3, "habits": 0, "rolling": 0}
    assert "retention of closing failed, and is tried again: a running summary is damaged" in caplog.text
    kept.sql("UPDATE sums SET sums = :one WHERE study = 2", one=right)
    Days(kept.collector).look()
    assert reports_by_study(kept)["closing"] == 0


def test_status_announces_first_deletions_a_week_ahead(inviting, capsys):
    inviting.publish(build_study(id="monthly", retention={"days": 30}))
    send_reports(inviting, "monthly", 2)
    last = inviting.day + timedelta(30)
    inviting.day += A_DAY
    send_reports(inviting, "monthly")
    first = f"2 reports of version 1, the first to go, are kept until {last} and no longer"
    inviting.day = last - timedelta(8)
    inviting.operate("status", "monthly")
    assert "are kept until" not in capsys.readouterr().out
    inviting.day += A_DAY
    inviting.operate("status", "monthly")
    assert f"look after: {first}, nor in the summary: export them" in lines(capsys)
    inviting.publish(build_study(id="closing", closes=inviting.day.isoformat(), retention={"days": 5}))
    send_reports(inviting, "closing")
    until = inviting.day = inviting.day + timedelta(5)
    inviting.operate("status", "closing")
    assert f"1 report of version 1 are kept until {until} and no longer" in capsys.readouterr().out
    inviting.day += A_DAY
    inviting.operate("status", "closing")
    assert f"retention\tversion 1\t5 days, until {until}\t1 kept\t1 overdue" in lines(capsys)


@pytest.mark.attack(19)
def test_clock_months_ahead_deletes_nothing(make_harness):
    """Set a clock months ahead: nothing is deleted until it is right, or an operator confirms the day."""
    harness = make_harness()
    closes = (harness.day + timedelta(19)).isoformat()
    short = build_study(id="short", closes=closes, retention={"days": 30})
    harness.publish(short)
    assert harness.put(build_report(short)).status_code == 201
    right, find = harness.day, harness.collector.rules.find
    kept = Kept("short", 1, 1, 30, None, date.max, 1, 1)

    def delete():
        return delete_overdue(harness.collector.writer.act, find, kept, harness.day)

    harness.day = right + timedelta(100)
    secret = secrets.token_bytes(16)
    harness.withdraw(report_id_of(secret), "short", secret)
    Days(harness.collector).look()
    with raises(InputError, "admin.retention_clock_in_doubt"):
        delete()
    harness.day = right
    assert delete() == 1
