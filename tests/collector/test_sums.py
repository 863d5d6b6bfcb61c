"""Damaged sums of a study stop that study alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from collector import store
from collector.db import WrongSumsError
from collector.problems import UNAVAILABLE
from collector.reports.intake import Receipt
from collector.reports.sums import take_back_reports
from collector.reports.writer import Change, Upload
from collector.store import withdraw_report
from tests.collector.answered import problem
from tests.kit.collectors import TODAY, build_report, build_study

STUDY = build_study()


@pytest.fixture
def counted(habits):
    habits.post([build_report(STUDY).to_document() for _ in range(5)])
    return habits


def damage(harness, sums, study=1):
    with harness.collector.database.write() as session:
        statement = text("UPDATE sums SET sums = :sums WHERE study = :study")
        session.execute(statement, {"sums": sums, "study": study})


@pytest.mark.attack(19)
@pytest.mark.parametrize("sums", [bytes(8), b""])
def test_sums_of_wrong_length_are_rejected(counted, sums):
    """Damage the rows of a running summary: no report may be miscounted."""
    damage(counted, sums)
    late = build_report(STUDY)
    assert problem(counted.summary()) == problem(counted.put(late)) == (503, "unavailable")
    assert len(counted.exported()) == 5


@pytest.mark.attack(15)
def test_damaged_sums_affect_only_their_own_study(counted):
    """Send to a study whose sums are damaged: work on other studies in the same commit must not fail."""
    other = build_study(id="other")
    counted.publish(other)
    collector, held = counted.collector, counted.exported()[0]
    damage(counted, bytes(8))

    def upload(study):
        report = build_report(study)
        return report, Upload(study.id, [collector.rules.find(study.id, 1).pack(report)])

    def withdraw(study_id, report_id):
        def act(session):
            number = store.study_state(session, study_id, keep=True).number
            report = withdraw_report(session, number, TODAY, report_id)
            take_back_reports(session, collector.rules.find, study_id, number, [report])

        return Change((study_id, report_id), act)

    (bad, first), (good, second) = upload(STUDY), upload(other)
    refused, stored = collector.writer._store([first, second])
    assert (refused.kind, stored) == (UNAVAILABLE, [Receipt.STORED])
    changes = [withdraw("habits", bytes.fromhex(held.id)), withdraw("other", bytes.fromhex(good.id))]
    damaged, done = collector.writer._store(changes)
    assert (type(damaged), done) == (WrongSumsError, None)
    assert counted.summary("other").json["questions"]["ever"]["n"] == 0
    kept = {report.id for report in counted.exported()}
    assert (held.id in kept, bad.id in kept) == (True, False)


def test_deletion_by_day_fails_with_damaged_sums(counted, caplog):
    counted.day = TODAY + timedelta(1)
    damage(counted, bytes(2))
    expired = counted.client.post(
        "/v1/studies/habits/expire", json={"before": "2026-06-16"}, headers=counted.operator
    )
    assert expired.status_code == 503
    assert "restore a backup (`ldpkit restore`)" in caplog.text
    assert len(counted.exported()) == 5


def test_study_with_damaged_sums_can_be_deleted(counted):
    damage(counted, bytes(2))
    deleted = counted.client.delete("/v1/studies/habits", headers=counted.operator)
    assert deleted.get_json() == {"id": "habits", "deleted": 5, "complete": True}
    with counted.collector.database.read() as session:
        kept = [session.scalar(text(f"SELECT count(*) FROM {table}")) for table in ("reports", "sums")]
    assert kept == [0, 0]
