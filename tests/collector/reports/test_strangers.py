"""What strangers send costs only their own allowance: invented ids, repeated deletions, many versions."""

from __future__ import annotations

import os

import pytest

from collector.limiter import TokenBucket
from collector.reports import rules, withdraw
from ldp_client.documents.report import report_id_of
from tests.collector.answered import problem
from tests.kit.collectors import Harness, build_report, build_study


@pytest.fixture
def harness(tmp_path, monkeypatch):
    # Nothing is gained back while the requests are made.
    monkeypatch.setattr(withdraw, "TokenBucket", lambda rate: TokenBucket(rate, lambda: 0.0))
    monkeypatch.setattr(withdraw, "DELETION_RATE", 4.0)
    made = Harness(f"sqlite:///{tmp_path / 'collector.sqlite3'}")
    made.publish(build_study())
    yield made
    made.collector.close()


@pytest.mark.attack(15)
def test_invented_ids_keep_no_withdrawal_out(harness):
    """A stranger asks for the deletion of invented reports, until nobody else's report can be withdrawn."""
    study = build_study()
    mine = [build_report(study) for _ in range(40)]
    harness.post([report.to_document() for report in mine])
    statuses = []
    for _ in range(100):
        secret = os.urandom(16)
        statuses.append(harness.withdraw(report_id_of(secret), secret=secret).status_code)
    assert statuses == [200] * 4 + [429] * 96
    assert [harness.withdraw(report.id, secret=report.secret).status_code for report in mine] == [200] * 40


@pytest.mark.attack(15)
def test_a_repeated_withdrawal_needs_no_write(harness, monkeypatch):
    """Its device, or a stranger with one report of their own, withdraws the same report again and again."""
    report = build_report(build_study())
    harness.put(report)
    assert harness.withdraw(report.id, secret=report.secret).status_code == 200
    monkeypatch.setattr(harness.collector.writer, "change", lambda *_work: pytest.fail("it was written"))
    for _ in range(100):
        assert harness.withdraw(report.id, secret=report.secret).status_code == 200


def test_deletions_are_limited_and_counted_but_never_an_operators(harness, caplog):
    reports = [build_report(build_study()) for _ in range(41)]
    harness.post([report.to_document() for report in reports])
    for report in reports[:40]:
        assert harness.withdraw(report.id, secret=report.secret).status_code == 200
    refused = harness.withdraw(reports[40].id, secret=reports[40].secret)
    assert problem(refused) == (429, "too-many-deletions")
    assert int(refused.headers["Retry-After"]) >= 1
    assert harness.withdraw(reports[40].id).status_code == 200
    metrics = harness.client.get("/metrics", headers=harness.operator).text
    assert 'ldpkit_reports_deleted_total{by="device"} 40.0' in metrics
    assert not [report for report in reports if report.id in caplog.text]


def test_a_study_has_a_bounded_number_of_versions(harness, monkeypatch):
    monkeypatch.setattr("collector.studies.MOST_VERSIONS", 2)
    assert harness.publish(build_study(2)).status_code == 201
    assert problem(harness.publish(build_study(3))) == (409, "study-conflict")
    assert harness.publish(build_study(2)).status_code == 200


def test_rules_of_few_documents_are_kept(harness, monkeypatch):
    harness.publish(build_study(2))
    monkeypatch.setattr(rules, "MOST_BYTES", 1)
    book = rules.RuleBook(harness.collector.database)
    for version in (1, 2, 1):
        found = book.find("habits", version)
        assert found.study.version == version
        assert book.find_in_use("habits", found.study.digest.encode()) is found
        assert len(book._rules) == len(book._by_digest) == 1
