"""A device withdraws its report for good, also one that comes later; nobody else can."""

import os

import pytest

from collector.limiter import TokenBucket
from collector.reports import limits
from ldp_client.documents.report import report_id_of
from tests.kit.answers import problem
from tests.kit.collectors import build_report


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
