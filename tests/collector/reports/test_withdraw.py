"""A device withdraws its report for good, also one that comes later; nobody else can."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from tests.collector.answered import PROBLEM, problem
from tests.kit.collectors import build_report, build_study
from tests.kit.deleting import delete_reports

STUDY = build_study()
WITHDRAWN = (410, "report-withdrawn")


def test_withdrawn_report_is_not_exported_or_stored_again(habits, make_report):
    kept, gone = make_report(STUDY), make_report(STUDY)
    habits.post([kept.to_document(), gone.to_document()])
    for _ in range(2):
        response = habits.withdraw(gone.id, secret=gone.secret)
        assert (response.status_code, response.json) == (200, {"id": gone.id, "result": "withdrawn"})
    assert habits.exported() == [kept]
    for again in (gone, make_report(STUDY, id=gone.id)):
        assert problem(habits.put(again)) == WITHDRAWN
    result = habits.post([gone.to_document(), kept.to_document()]).get_json()
    assert result["duplicates"] == 1
    assert [(one["id"], one["type"]) for one in result["failed"]] == [(gone.id, f"{PROBLEM}report-withdrawn")]
    assert habits.exported() == [kept]


def test_an_unknown_report_or_study_is_404(habits, make_report):
    report = make_report(STUDY)
    habits.put(report)
    assert problem(habits.withdraw(os.urandom(16).hex())) == (404, "report-unknown")
    assert problem(habits.withdraw(report.id, "nosuch")) == (404, "study-unknown")
    for malformed in ("x", "0" * 31, "A" * 32):
        assert problem(habits.withdraw(malformed)) == (422, "parameter-invalid")
    assert habits.exported() == [report]


@pytest.mark.attack(11)
@pytest.mark.parametrize("is_closed", [False, True])
def test_report_uploaded_after_its_withdrawal_is_refused(habits, is_closed):
    """A withdrawn report arrives afterwards, its upload being under way: it must stay out."""
    late, other = build_report(STUDY), build_report(STUDY)
    habits.put(other)
    if is_closed:
        habits.close()
    for _ in range(2):
        assert habits.withdraw(late.id, secret=late.secret).status_code == 200
    assert problem(habits.put(late)) == WITHDRAWN
    assert habits.exported() == [other]
    assert habits.summary().json["questions"]["ever"]["n"] == 1
    assert habits.withdraw(other.id, secret=other.secret).status_code == 200
    assert habits.exported() == []


@pytest.mark.attack(11)
def test_expired_and_withdrawn_reports_stay_out(habits):
    """A relay keeps copies of withdrawn and expired reports, and sends them later or once it opens again."""
    database = habits.collector.database
    expired, back, promised, last = (build_report(STUDY) for _ in range(4))
    assert [habits.put(report).status_code for report in (expired, back)] == [201, 201]
    for report in (back, promised):
        assert habits.withdraw(report.id, secret=report.secret).status_code == 200
    habits.day += timedelta(9)
    assert [delete_reports(database, "habits", habits.day) for _ in range(2)] == [1, 0]
    gone = (expired, back, promised)
    assert [problem(habits.put(report)) for report in gone] == [WITHDRAWN] * 3
    assert habits.put(last).status_code == 201
    habits.close()
    assert delete_reports(database, "habits", habits.day + timedelta(1)) == 1
    assert habits.client.post("/v1/studies/habits/open", headers=habits.operator).status_code == 200
    assert [problem(habits.put(report)) for report in (*gone, last)] == [WITHDRAWN] * 4
    assert habits.summary().get_json()["questions"]["ever"]["n"] == 0


def delete(harness, report, secret=None):
    headers = {} if secret is None else {"LDPKit-Withdrawal": secret}
    return harness.client.delete(f"/v1/studies/habits/reports/{report.id}", headers=headers)


@pytest.mark.attack(14)
def test_only_its_own_secret_deletes_a_report(filled):
    """Who has an export, or another report's secret, tries to delete reports."""
    first, mine, *_ = filled.sent
    assert problem(delete(filled, mine)) == (401, "withdrawal-unproven")
    # An id is not its own secret, nor is another report's id.
    for guess in (mine.id, first.id, mine.id.upper(), "", "00" * 16, "\u00e9" * 32, first.secret.hex()):
        assert problem(delete(filled, mine, guess)) == (403, "withdrawal-refused")
    assert len(filled.exported()) == len(filled.sent)
    assert delete(filled, mine, mine.secret.hex()).status_code == 200
    assert {report.id for report in filled.exported()} == {one.id for one in filled.sent if one is not mine}
