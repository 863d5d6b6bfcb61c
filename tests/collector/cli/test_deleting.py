"""`ldpkit delete`: what goes, what is said before, and what stays."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from collector import retention
from collector.api import operator
from collector.audit_log import entries
from ldp_client.documents.errors import InputError, LdpkitError
from tests.kit.answers import publish_retained, reports_by_study, send_reports
from tests.kit.errors import raises
from tests.kit.operators import at, lines

A_DAY = timedelta(1)


@pytest.fixture
def kept(inviting, make_study):
    """A collector with two studies whose reports are kept 20 days."""
    return publish_retained(inviting, make_study, 20)


def test_operator_sees_overdue_reports(asked, kept, make_report, capsys):
    asked(kept)
    send_reports(kept, make_report, "closing", 3)
    last = kept.day + timedelta(22)
    kept.day = last
    at("status", "closing")
    assert f"3 reports of version 1 are kept until {last} and no longer" in capsys.readouterr().out
    kept.day += A_DAY
    at("status", "closing")
    assert f"retention\tversion 1\t20 days, until {last}\t3 kept\t3 overdue" in lines(capsys)


def test_reports_from_before_a_day_are_deleted(asked, kept, study, make_report, capsys, monkeypatch):
    asked(kept)
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 4)
    monkeypatch.setattr(operator, "MOST_AT_ONCE", 6)
    send_reports(kept, make_report, "habits", 10)
    kept.day += A_DAY
    last = make_report(study)
    kept.put(last)
    delete = ["delete", "habits", "--before", kept.day.isoformat()]
    with raises(InputError, "options.needs_yes", "10", "habits"):
        at(*delete)
    at(*delete, "--yes")
    assert lines(capsys) == ["10 reports of habits deleted"]
    assert kept.exported() == [last]
    with kept.collector.database.read() as session:
        found = [entry for entry in entries(session, 100) if entry.action == "expire"]
    assert [(entry.key, entry.study) for entry in found] == [("(token)", "habits")]


def test_delete_refuses_a_day_to_come_or_an_unknown_study(asked, kept, make_report):
    asked(kept)
    send_reports(kept, make_report, "habits")
    tomorrow = (kept.day + A_DAY).isoformat()
    with raises(LdpkitError, "server.refused", "still to come"):
        at("delete", "habits", "--before", tomorrow, "--yes")
    with raises(LdpkitError, "server.refused", "'nosuch'"):
        at("delete", "nosuch", "--before", "2026-06-01", "--yes")
    assert reports_by_study(kept)["habits"] == 1


def test_delete_command_deletes_a_study_permanently(
    asked, kept, study, make_study, make_report, capsys, monkeypatch
):
    asked(kept)
    monkeypatch.setattr(operator, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 2)
    send_reports(kept, make_report, "habits", 5)
    with raises(InputError, "options.needs_yes", "5", "habits"):
        at("delete", "habits")
    # Twice, as the message says of a deletion that broke off.
    for count in (5, 0):
        at("delete", "habits", "--yes")
        assert lines(capsys) == [f"{count} reports of habits deleted, and the study closed permanently"]
    assert kept.exported() == []
    assert kept.put(make_report(study)).status_code == 410
    assert kept.client.get("/v1/studies/habits?version=1").data == study.canonical()
    assert kept.publish(make_study(version=2)).status_code == 410
    at("status", "habits", "--json")
    assert json.loads(capsys.readouterr().out)["state"] == "deleted"
