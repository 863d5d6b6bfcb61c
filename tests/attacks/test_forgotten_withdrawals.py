"""A copy of a withdrawn or expired report, which a relay may keep, is accepted again after retention."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.collector.answered import problem
from tests.collector.conftest import build_report, build_study
from tests.kit.deleting import delete_reports, delete_study

STUDY = build_study()


@pytest.fixture
def expiring(make_harness, database_url):
    harness = make_harness(database=database_url, lock_timeout=10)
    harness.publish(STUDY)
    return harness


def test_expired_withdrawn_report_is_still_refused(expiring):
    database = expiring.collector.database
    kept, back, promised = (build_report(STUDY) for _ in range(3))
    for report in (kept, back):
        assert expiring.put(report).status_code == 201
    for report in (back, promised):
        assert expiring.withdraw(report.id, secret=report.secret).status_code == 200
    expiring.day += timedelta(9)
    assert delete_reports(database, "habits", expiring.day) == 1
    assert [problem(expiring.put(report)) for report in (back, promised)] == [(410, "report-withdrawn")] * 2
    assert delete_reports(database, "habits", expiring.day) == 0
    assert expiring.exported() == []


def test_no_report_rows_are_left_of_a_deleted_study(expiring):
    reports = [build_report(STUDY) for _ in range(2)]
    for report in reports:
        expiring.put(report)
    expiring.withdraw(reports[0].id, secret=reports[0].secret)
    expiring.close()
    assert delete_study(expiring.collector.database, "habits") == 1
    with expiring.collector.database.read() as session:
        assert session.connection().exec_driver_sql("SELECT count(*) FROM reports").scalar() == 0
    assert [problem(expiring.put(report)) for report in reports] == [(410, "study-closed")] * 2


def test_expired_report_is_refused_in_a_reopened_study(expiring):
    """A relay may have kept a copy. The report may also expire while the study is closed."""
    database = expiring.collector.database
    first, second = (build_report(STUDY) for _ in range(2))
    assert expiring.put(first).status_code == 201
    expiring.day += timedelta(1)
    assert delete_reports(database, "habits", expiring.day) == 1
    assert problem(expiring.put(first)) == (410, "report-withdrawn")
    assert expiring.put(second).status_code == 201
    expiring.close()
    assert delete_reports(database, "habits", expiring.day + timedelta(1)) == 1
    path = "/v1/studies/habits/open"
    assert expiring.client.post(path, headers=expiring.operator).status_code == 200
    assert [problem(expiring.put(report)) for report in (first, second)] == [(410, "report-withdrawn")] * 2
    assert expiring.summary("habits").get_json()["questions"]["ever"]["n"] == 0
