"""A device withdraws its report for good, also one that comes later; nobody else can."""

import os
from datetime import timedelta

import pytest

from collector.limiter import TokenBucket
from collector.reports import limits
from ldp_client.documents.report import report_id_of
from tests.kit.answers import problem
from tests.kit.collectors import build_report
from tests.kit.deleting import delete_reports


def test_an_unknown_report_or_study_is_404(filled):
    report = filled.sent[0]
    for address, expected in (
        (("0" * 32,), (404, "report-unknown")),
        ((report.id, "nosuch"), (404, "study-unknown")),
        (("A" * 32,), (422, "parameter-invalid")),
    ):
        assert problem(filled.withdraw(*address)) == expected
    assert filled.exported() == filled.sent


@pytest.mark.attack(11)
def test_expired_and_withdrawn_reports_stay_out(habits, study):
    """A relay keeps copies of withdrawn and expired reports, and sends them later or once it opens again."""
    database = habits.collector.database
    expired, back, promised, last = (build_report(study) for _ in range(4))
    assert [habits.put(report).status_code for report in (expired, back)] == [201, 201]
    for report in (back, promised):
        assert habits.withdraw(report.id, secret=report.secret).status_code == 200
    habits.day += timedelta(9)
    assert [delete_reports(database, "habits", habits.day) for _ in range(2)] == [1, 0]
    gone = [expired, back, promised]
    assert {problem(habits.put(report)) for report in gone} == {(410, "report-withdrawn")}
    assert habits.put(last).status_code == 201
    habits.close()
    assert delete_reports(database, "habits", habits.day + timedelta(1)) == 1
    assert habits.reopen() == 200
    assert {problem(habits.put(report)) for report in [*gone, last]} == {(410, "report-withdrawn")}
    assert habits.summary().get_json()["questions"]["ever"]["n"] == 0


@pytest.mark.attack(14)
def test_only_its_own_secret_deletes_a_report(filled):
    """Who has an export, or another report's secret, tries to delete reports."""
    first, mine, *rest = filled.sent

    def delete(**headers):
        return filled.client.delete(f"/v1/studies/habits/reports/{mine.id}", headers=headers)

    assert problem(delete()) == (401, "withdrawal-unproven")
    # An id is not its own secret, nor is another report's id.
    for guess in (mine.id, first.id, "", "00" * 16, "\u00e9" * 32, first.secret.hex()):
        assert problem(delete(**{"LDPKit-Withdrawal": guess})) == (403, "withdrawal-refused")
    assert filled.exported() == filled.sent
    assert delete(**{"LDPKit-Withdrawal": mine.secret.hex()}).status_code == 200
    assert filled.exported() == [first, *rest]


@pytest.fixture
def harness(make_harness, monkeypatch, study):
    # Nothing is gained back while the requests are made.
    monkeypatch.setattr(limits, "TokenBucket", lambda rate: TokenBucket(rate, lambda: 0.0))
    monkeypatch.setattr(limits, "DELETION_RATE", 4.0)
    made = make_harness()
    made.publish(study)
    return made


@pytest.mark.attack(15)
def test_invented_ids_keep_no_withdrawal_out(harness, study):
    """A stranger asks for the deletion of invented reports, until nobody else's report can be withdrawn."""
    mine = [build_report(study) for _ in range(40)]
    harness.post([report.to_document() for report in mine])
    statuses = []
    for _ in range(100):
        secret = os.urandom(16)
        statuses.append(harness.withdraw(report_id_of(secret), secret=secret).status_code)
    assert statuses == [200] * 4 + [429] * 96
    assert [harness.withdraw(report.id, secret=report.secret).status_code for report in mine] == [200] * 40


@pytest.mark.attack(15)
def test_a_repeated_withdrawal_needs_no_write(harness, study, monkeypatch):
    """Its device, or a stranger with one report of their own, withdraws the same report again and again."""
    report = build_report(study)
    harness.put(report)
    assert harness.withdraw(report.id, secret=report.secret).status_code == 200
    monkeypatch.setattr(harness.collector.writer, "change", lambda *_work: pytest.fail("it was written"))
    for _ in range(100):
        assert harness.withdraw(report.id, secret=report.secret).status_code == 200


def test_deletions_are_limited_and_counted_but_never_an_operators(harness, study, caplog):
    *reports, last = (build_report(study) for _ in range(41))
    harness.post([report.to_document() for report in (*reports, last)])
    for report in reports:
        assert harness.withdraw(report.id, secret=report.secret).status_code == 200
    refused = harness.withdraw(last.id, secret=last.secret)
    assert problem(refused) == (429, "too-many-deletions")
    assert int(refused.headers["Retry-After"]) >= 1
    assert harness.withdraw(last.id).status_code == 200
    assert 'ldpkit_reports_deleted_total{by="device"} 40.0' in harness.metrics()
    assert not [report for report in reports if report.id in caplog.text]
