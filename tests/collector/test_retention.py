"""Reports are kept for as long as their study states, and no longer; with them goes what was made of them."""

from __future__ import annotations

import json
import logging
from datetime import timedelta

import pytest
from sqlalchemy import text

from collector.logs import JsonLines
from collector.operator import actions, retention
from collector.operator.daily import Days
from collector.reports.running_summary import build_sums
from collector.storage.audit_log import entries
from ldp_client.documents.errors import InputError, LdpkitError, TransferError
from tests.collector.test_operating import URL, asked, at, either, lines  # noqa: F401
from tests.kit.errors import raises

A_DAY = timedelta(1)


@pytest.fixture
def kept(either, make_study):  # noqa: F811
    """A collector with two studies: 30 days after the last day, and 30 days for each report."""
    closes = (either.day + timedelta(2)).isoformat()
    either.publish(make_study(id="closing", closes=closes, retention={"days": 30}))
    either.publish(make_study(id="rolling", retention={"days": 30}))
    return either


def send(harness, make_report, study_id, count=1):
    study = harness.collector.rules.find(study_id, 1).study
    for _ in range(count):
        assert harness.put(make_report(study)).status_code == 201


def reports(harness):
    harness.collector.studies.forget()
    harness.collector.arrivals.forget()
    found = harness.client.get("/v1/studies", headers=harness.operator).get_json()["studies"]
    return {one["id"]: one["reports"] for one in found}


def pass_days(harness, count):
    """The server looks each day, as it does while it runs."""
    days = Days(harness.collector)
    for _ in range(count):
        harness.day += A_DAY
        days.look()


@pytest.mark.slow
def test_server_deletes_reports_after_their_retention(kept, make_report, monkeypatch):
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 2)
    for study_id in ("closing", "rolling", "habits"):
        send(kept, make_report, study_id, 5)
    pass_days(kept, 1)
    send(kept, make_report, "rolling")
    pass_days(kept, 29)
    assert reports(kept) == {"closing": 5, "habits": 5, "rolling": 6}
    pass_days(kept, 1)
    # Of the day before one is left; "habits" states nothing.
    assert reports(kept) == {"closing": 5, "habits": 5, "rolling": 1}
    assert kept.summary("rolling").get_json()["questions"]["ever"]["n"] == 1
    pass_days(kept, 1)
    assert reports(kept) == {"closing": 5, "habits": 5, "rolling": 0}
    pass_days(kept, 1)
    assert reports(kept) == {"closing": 0, "habits": 5, "rolling": 0}
    with kept.collector.database.read() as session:
        said = {(one.key, one.study, one.detail) for one in entries(session, 10) if one.action == "retention"}
    assert ("(server)", "closing", "version 1, kept for 30 days: 5 reports") in said
    metrics = kept.client.get("/metrics", headers=kept.operator).text
    assert 'ldpkit_reports_deleted_total{by="retention"} 11.0' in metrics
    assert 'ldpkit_study_reports_overdue{study="closing"} 0.0' in metrics


def test_report_after_the_end_of_retention_is_410(either, make_study, make_report):  # noqa: F811
    """Between the end of retention and of `grace_days`, devices got receipts for reports deleted at once."""
    first = make_study(id="short", closes=either.day.isoformat(), retention={"days": 2})
    other = make_study(2, id="short")
    either.publish(first)
    sent = make_report(first)
    either.day += timedelta(2)
    assert either.put(sent).status_code == 201
    either.day += A_DAY
    late = either.put(make_report(first))
    assert (late.status_code, late.get_json()["type"]) == (410, "urn:ldpkit:problem:study-closed")
    assert "were kept until" in late.get_json()["detail"]
    # No day brings that back: devices need not send it again.
    assert late.get_json()["final"] is True
    assert either.put(sent).status_code == 200
    either.publish(other)
    assert [either.put(make_report(one)).status_code for one in (first, other)] == [410, 201]


@pytest.mark.slow
def test_failing_study_does_not_stop_retention_of_others(kept, make_report, caplog):
    for study_id in ("closing", "rolling"):
        send(kept, make_report, study_id, 3)
    with kept.collector.database.write() as session:
        session.execute(text("UPDATE sums SET sums = :one WHERE study = 2"), {"one": bytes(8)})
    days = Days(kept.collector)
    for _ in range(40):
        kept.day += A_DAY
        days.look()
    assert reports(kept) == {"closing": 3, "habits": 0, "rolling": 0}
    assert "retention of closing failed, and is tried again: a running summary is damaged" in caplog.text
    with kept.collector.database.write() as session:
        build_sums(session)
    days.look()
    assert reports(kept)["closing"] == 0


def test_operator_sees_and_deletes_overdue_reports(asked, kept, make_report, capsys):  # noqa: F811
    asked(kept)
    send(kept, make_report, "closing", 3)
    last = kept.day + timedelta(32)
    kept.day = last
    at("status", "closing")
    assert f"3 reports of version 1 are kept until {last} and no longer" in capsys.readouterr().out
    kept.day += A_DAY
    at("status", "closing")
    assert f"retention\tversion 1\t30 days, until {last}\t3 kept\t3 overdue" in lines(capsys)
    with raises(InputError, "options.needs_yes", "deleting", "closing"):
        at("expire")
    at("expire", "--dry-run")
    assert lines(capsys) == [f"would delete 3 reports of closing at {URL}"]
    with raises(InputError, "admin.no_stated_retention", "habits"):
        at("expire", "habits", "--yes")
    at("expire", "--yes")
    assert lines(capsys) == ["3 reports of closing deleted"]
    at("expire", "--yes")
    assert lines(capsys) == [f"nothing is overdue at {URL}"]
    assert reports(kept)["closing"] == 0


def test_reports_from_before_a_day_are_deleted(asked, kept, study, make_report, capsys, monkeypatch):  # noqa: F811
    asked(kept)
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 4)
    monkeypatch.setattr(actions, "MOST_AT_ONCE", 6)
    send(kept, make_report, "habits", 10)
    kept.day += A_DAY
    last = make_report(study)
    kept.put(last)
    expire = ["expire", "habits", "--before", kept.day.isoformat()]
    with raises(InputError, "options.needs_yes", "10", "habits"):
        at(*expire)
    at(*expire, "--dry-run")
    assert lines(capsys) == [f"would delete 10 reports of habits at {URL}"]
    at(*expire, "--yes")
    assert lines(capsys) == ["10 reports of habits deleted"]
    assert kept.exported() == [last]
    with kept.collector.database.read() as session:
        found = [entry for entry in entries(session, 100) if entry.action == "expire"]
    assert [(entry.key, entry.study) for entry in found] == [("(token)", "habits")]


def test_expire_refuses_a_day_to_come_no_day_and_no_study(asked, kept, make_report):  # noqa: F811
    asked(kept)
    send(kept, make_report, "habits")
    tomorrow = (kept.day + A_DAY).isoformat()
    with pytest.raises(LdpkitError, match="still to come"):
        at("expire", "habits", "--before", tomorrow, "--yes")
    with raises(InputError, "options.wrong_day", "June"):
        at("expire", "habits", "--before", "June", "--yes")
    with raises(InputError, "admin.expire_without_study"):
        at("expire", "--before", "2026-06-01", "--yes")
    with raises(LdpkitError, "server.refused", "'nosuch'"):
        at("expire", "nosuch", "--before", "2026-06-01", "--yes")
    assert reports(kept)["habits"] == 1


def test_delete_command_deletes_a_study_permanently(asked, kept, make_report, capsys, monkeypatch):  # noqa: F811
    asked(kept)
    monkeypatch.setattr(actions, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 2)
    send(kept, make_report, "habits", 5)
    with raises(InputError, "options.needs_yes", "5", "habits"):
        at("delete", "habits")
    at("delete", "habits", "--dry-run")
    assert lines(capsys) == [f"would delete 5 reports of habits at {URL}, and close it permanently"]
    at("delete", "habits", "--yes")
    assert lines(capsys) == ["5 reports of habits deleted, and the study closed permanently"]
    assert kept.exported() == []
    at("status", "habits", "--json")
    assert json.loads(capsys.readouterr().out)["state"] == "deleted"


def test_status_announces_first_deletions_a_week_ahead(asked, kept, make_report, capsys):  # noqa: F811
    asked(kept)
    send(kept, make_report, "rolling", 2)
    last = kept.day + timedelta(30)
    kept.day += A_DAY
    send(kept, make_report, "rolling")

    def told():
        at("status", "rolling")
        return [line for line in lines(capsys) if "are kept until" in line]

    kept.day = last - timedelta(8)
    assert told() == []
    first = f"2 reports of version 1, the first to go, are kept until {last} and no longer"
    for left in (7, 0):
        kept.day = last - timedelta(left)
        assert told() == [f"look after: {first}, nor in the summary: export them"]


def test_very_long_retention_is_not_announced(kept, make_study, make_report):
    kept.publish(make_study(id="long", retention={"days": 36_500}))
    send(kept, make_report, "long")
    found = kept.client.get("/v1/studies/long/status", headers=kept.operator).get_json()
    assert not any("kept until" in line for line in found["attention"])


def test_expire_continues_after_a_failing_study(asked, kept, make_report, capsys):  # noqa: F811
    """`expire` used to stop at the first study that failed and never reached the studies after it."""
    asked(kept)
    for study_id in ("closing", "rolling"):
        send(kept, make_report, study_id)
    kept.day += timedelta(40)
    with kept.collector.database.write() as session:
        session.execute(text("UPDATE sums SET sums = :one WHERE study = 2"), {"one": bytes(8)})
    with raises(TransferError, "admin.not_all_deleted", "closing"):
        at("expire", "--yes", "--json")
    said = {"done": False, "reports": {"closing": 1, "rolling": 1}, "deleted": {"rolling": 1}}
    assert json.loads(capsys.readouterr().out) == said
    assert reports(kept) == {"closing": 1, "habits": 0, "rolling": 0}


def test_a_key_deletes_in_its_own_studies_alone(kept, make_report):
    for study_id in ("closing", "rolling"):
        send(kept, make_report, study_id)
    kept.day += timedelta(40)
    made = {"name": "ann", "role": "operate", "studies": ["rolling"]}
    key = kept.client.post("/v1/keys", json=made, headers=kept.operator).get_json()["key"]
    ann = {"Authorization": f"Bearer {key}"}
    listed = kept.client.get("/v1/retention", headers=ann).get_json()["retention"]
    assert [one["study"] for one in listed] == ["rolling"]
    assert kept.client.post("/v1/studies/closing/expire", json={}, headers=ann).status_code == 403
    answer = kept.client.post("/v1/studies/rolling/expire", json={}, headers=ann)
    assert answer.get_json() == {"id": "rolling", "deleted": 1, "complete": True}


def test_a_wrong_clock_deletes_nothing(asked, kept, make_report, caplog):  # noqa: F811
    """A clock that is years ahead never deletes; one months ahead does not delete on its first day."""
    asked(kept)
    send(kept, make_report, "closing")
    right = kept.day
    kept.day += timedelta(3 * 366)
    Days(kept.collector).look()
    with raises(LdpkitError, "admin.not_all_deleted"):
        at("expire", "--yes")
    assert reports(kept)["closing"] == 1
    kept.day = right + timedelta(100)
    days = Days(kept.collector)
    days.look()
    assert "they are deleted tomorrow" in caplog.text
    assert reports(kept)["closing"] == 1
    kept.day += A_DAY
    days.look()
    assert reports(kept)["closing"] == 0


def test_daily_counts_are_logged_without_uploads(habits, study, make_report, caplog):
    caplog.set_level(logging.INFO, "collector")
    habits.put(make_report(study))
    first = habits.day
    pass_days(habits, 2)
    said = [json.loads(JsonLines().format(record)) for record in caplog.records]
    counts = [(line["day"], line["accepted"]) for line in said if line["code"] == "counts"]
    assert counts == [(str(first), 1), (str(first + A_DAY), 1)]
