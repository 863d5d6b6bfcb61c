"""A device withdraws its report for good, also one that comes later; nobody else can."""

import os
from datetime import timedelta

import pytest

from collector.limiter import TokenBucket
from collector.reports import limits, rules
from ldp_client.documents.report import report_id_of
from tests.kit.answers import problem
from tests.kit.collectors import Harness, build_report, build_study
from tests.kit.deleting import delete_reports

STUDY = build_study()
WITHDRAWN = (410, "report-withdrawn")


def test_an_unknown_report_or_study_is_404(habits, make_report):
    report = make_report(STUDY)
    habits.put(report)
    assert problem(habits.withdraw(os.urandom(16).hex())) == (404, "report-unknown")
    assert problem(habits.withdraw(report.id, "nosuch")) == (404, "study-unknown")
    for malformed in ("x", "0" * 31, "A" * 32):
        assert problem(habits.withdraw(malformed)) == (422, "parameter-invalid")
    assert habits.exported() == [report]


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
    assert habits.reopen() == 200
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


@pytest.fixture
def harness(tmp_path, monkeypatch):
    # Nothing is gained back while the requests are made.
    monkeypatch.setattr(limits, "TokenBucket", lambda rate: TokenBucket(rate, lambda: 0.0))
    monkeypatch.setattr(limits, "DELETION_RATE", 4.0)
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
    assert 'ldpkit_reports_deleted_total{by="device"} 40.0' in harness.metrics()
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
