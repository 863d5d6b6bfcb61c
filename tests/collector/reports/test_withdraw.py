"""A device withdraws its report for good, also one that comes later; nobody else can."""

import os

import pytest

from collector import limiter
from collector.limiter import TokenBucket
from ldp_client.documents.report import report_id_of
from tests.kit.answers import problem
from tests.kit.collectors import build_report


@pytest.mark.attack(14)
def test_only_its_own_secret_deletes_a_report(filled):
    """Who has an export, or another report's secret, tries to delete reports."""
    first, mine, *_ = filled.sent
    # An id is not its own secret, nor is another report's id.
    for guess in (mine.id, first.id, "", "00" * 16, "\u00e9" * 32, first.secret.hex()):
        headers = {"LDPKit-Withdrawal": guess}
        answer = filled.client.delete(f"/v1/studies/habits/reports/{mine.id}", headers=headers)
        assert problem(answer) == (403, "withdrawal-refused")
    assert filled.exported() == filled.sent


@pytest.mark.attack(15)
def test_invented_ids_keep_no_withdrawal_out(make_harness, study, monkeypatch, caplog):
    """A stranger asks for the deletion of invented reports, until nobody else's report can be withdrawn."""
    # Nothing is gained back while the requests are made.
    monkeypatch.setattr(limiter, "TokenBucket", lambda rate: TokenBucket(rate, lambda: 0.0))
    monkeypatch.setattr(limiter, "DELETION_RATE", 4.0)
    harness = make_harness()
    harness.publish(study)
    *mine, last = (build_report(study) for _ in range(41))
    harness.post([report.to_document() for report in (*mine, last)])
    statuses = []
    for _ in range(100):
        secret = os.urandom(16)
        statuses.append(harness.withdraw(report_id_of(secret), secret=secret).status_code)
    assert statuses == [200] * 4 + [429] * 96
    assert [harness.withdraw(report.id, secret=report.secret).status_code for report in mine] == [200] * 40
    refused = harness.withdraw(last.id, secret=last.secret)
    assert problem(refused) == (429, "too-many-deletions")
    assert int(refused.headers["Retry-After"]) >= 1
    # No limit is an operator's.
    assert harness.withdraw(last.id).status_code == 200
    assert 'ldpkit_reports_deleted_total{by="device"} 44.0' in harness.metrics()
    assert not [report for report in mine if report.id in caplog.text]


@pytest.mark.attack(15)
def test_a_repeated_withdrawal_needs_no_write(filled, monkeypatch):
    """Its device, or a stranger with one report of their own, withdraws the same report again and again."""
    report = filled.sent[0]
    assert filled.withdraw(report.id, secret=report.secret).status_code == 200
    monkeypatch.setattr(filled.collector.writer, "change", lambda *_work: pytest.fail("it was written"))
    for _ in range(100):
        assert filled.withdraw(report.id, secret=report.secret).status_code == 200
