"""The running summary's rows are damaged, so that reports are miscounted or a recount cannot repair them.

Defence: The collector: does not read sums of the wrong length, and then stores nothing for that study and
everything for others; deletes and closes nothing (`expire`, `delete`); and `ldpkit upkeep --recount`
counts again.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from collector.problems import UNAVAILABLE
from collector.reports.intake import Receipt
from collector.reports.running_summary import take_back_reports
from collector.reports.writer import Change, Upload
from collector.storage import queries
from collector.storage.emptying import withdraw_report
from collector.storage.sums import WrongSumsError
from tests.collector.answered import problem
from tests.collector.conftest import TODAY, build_report, build_study

STUDY = build_study()


@pytest.fixture
def counted(make_harness, database_url):
    harness = make_harness(database=database_url, lock_timeout=10)
    harness.url = database_url
    harness.publish(STUDY)
    harness.post([build_report(STUDY).to_document() for _ in range(5)])
    return harness


@pytest.mark.parametrize("damage", [bytes(8), bytes(16), bytes(3), b""])
def test_sums_of_wrong_length_are_rejected_until_recounted(counted, damage, capsys):
    """NumPy would add a single number to every element of a vector."""
    right = counted.summary().text
    with counted.collector.database.write() as session:
        session.execute(text("UPDATE sums SET sums = :damage"), {"damage": damage})
    late = build_report(STUDY)
    assert problem(counted.summary()) == problem(counted.put(late)) == (503, "unavailable")
    assert len(counted.exported()) == 5
    counted.operate("upkeep", "--recount")
    assert "habits\tversion 1\tthe summary was wrong, and is right now" in capsys.readouterr().out
    assert counted.summary().text == right
    assert counted.put(late).status_code == 201
    assert counted.summary().json["questions"]["ever"]["n"] == 6


def test_damaged_sums_affect_only_their_own_study(counted):
    """One commit stores many uploads, and strangers may keep sending to the damaged study."""
    other = build_study(id="other")
    counted.publish(other)
    first, good, bad = build_report(other), build_report(other), build_report(STUDY)
    held = counted.exported()[0]
    assert counted.put(first).status_code == 201
    with counted.collector.database.write() as session:
        session.execute(text("UPDATE sums SET sums = :damage WHERE study = 1"), {"damage": bytes(8)})
    collector = counted.collector

    def upload(study, report):
        return Upload(study.id, [collector.rules.find(study.id, 1).pack(report)])

    works = [upload(STUDY, bad), upload(other, good)]
    refused, stored = collector.writer._store(works)
    assert (refused.kind, stored) == (UNAVAILABLE, [Receipt.STORED])
    refused, stored = collector.writer._store(works)
    assert (refused.kind, stored) == (UNAVAILABLE, [Receipt.DUPLICATE])

    def withdraw(study_id, report_id):
        def act(session):
            number = queries.study_state(session, study_id, keep=True).number
            report = withdraw_report(session, number, TODAY, report_id)
            take_back_reports(session, collector.rules.find, study_id, number, [report])

        return Change((study_id, report_id), act)

    changes = [withdraw("habits", bytes.fromhex(held.id)), withdraw("other", bytes.fromhex(good.id))]
    damaged, done = collector.writer._store(changes)
    assert (type(damaged), done) == (WrongSumsError, None)
    assert counted.summary("other").json["questions"]["ever"]["n"] == 1
    assert bad.id not in {report.id for report in counted.exported()}
    assert held.id in {report.id for report in counted.exported()}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/studies/habits/expire", {"before": "2026-06-16"}),
        ("DELETE", "/v1/studies/habits", None),
    ],
)
def test_deletion_fails_until_damaged_sums_are_recounted(counted, caplog, method, path, body):
    counted.day = TODAY + timedelta(1)

    def delete():
        return counted.client.open(path, method=method, json=body, headers=counted.operator)

    with counted.collector.database.write() as session:
        session.execute(text("UPDATE sums SET sums = :damage"), {"damage": bytes(2)})
    assert delete().status_code == 503
    assert "(2 bytes instead of" in caplog.text
    assert "run `ldpkit upkeep --recount`" in caplog.text
    assert len(counted.exported()) == 5
    with counted.collector.database.read() as session:
        assert not queries.study_state(session, "habits").closed
    counted.operate("upkeep", "--recount")
    assert delete().get_json() == {"id": "habits", "deleted": 5, "complete": True}
