"""A withdrawn report, or one that a relay kept, is accepted again once reports of its day expire."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collector.oblivious.keys import GatewayKeys
from tests.collector.answered import problem
from tests.collector.conftest import build_report, build_study
from tests.kit.deleting import delete_reports, delete_study
from tests.oblivious.conftest import relayed_study

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


@pytest.mark.parametrize("delete", [delete_study, lambda *where: delete_reports(*where)])
def test_no_report_rows_are_left_of_a_closed_study(expiring, delete):
    reports = [build_report(STUDY) for _ in range(2)]
    for report in reports:
        expiring.put(report)
    expiring.withdraw(reports[0].id, secret=reports[0].secret)
    expiring.close()
    assert delete(expiring.collector.database, "habits") == 1
    with expiring.collector.database.read() as session:
        assert session.connection().exec_driver_sql("SELECT count(*) FROM reports").scalar() == 0
    assert [problem(expiring.put(report)) for report in reports] == [(410, "study-closed")] * 2


def test_expired_report_of_relayed_study_is_refused(make_harness, database_url, tmp_path):
    """Also if it expired while the study was closed for a time; deleting the study deletes all rows."""
    keys = GatewayKeys.generate()
    keys.save(tmp_path / "ohttp.keys")
    expiring = make_harness(database=database_url, lock_timeout=10, ohttp_keys=str(tmp_path / "ohttp.keys"))
    database = expiring.collector.database
    study = relayed_study("https://relay.example/ldpkit", keys, id="relayed")
    assert expiring.publish(study).status_code == 201
    first, second = (build_report(study) for _ in range(2))
    assert expiring.put(first).status_code == 201
    expiring.day += timedelta(1)
    assert delete_reports(database, "relayed", expiring.day) == 1
    assert problem(expiring.put(first)) == (410, "report-withdrawn")
    assert expiring.put(second).status_code == 201
    expiring.close("relayed")
    assert delete_reports(database, "relayed", expiring.day + timedelta(1)) == 1
    path = "/v1/studies/relayed/open"
    assert expiring.client.post(path, headers=expiring.operator).status_code == 200
    assert [problem(expiring.put(one)) for one in (first, second)] == [(410, "report-withdrawn")] * 2
    assert expiring.summary("relayed").get_json()["questions"]["ever"]["n"] == 0
    delete_study(database, "relayed")
    with database.read() as session:
        assert session.connection().exec_driver_sql("SELECT count(*) FROM reports").scalar() == 0
