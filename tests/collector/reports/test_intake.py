"""Single uploads, batches and withdrawals: what is stored, what is refused, and whose fault it is."""

import contextlib
import os
from datetime import timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import DataError

from collector import context, store
from collector.limiter import TokenBucket
from collector.problems import INTERNAL, STUDY_CLOSED, ProblemError
from collector.reports import intake
from collector.reports.intake import Receipt
from collector.reports.writer import Change, Upload
from collector.store import PackedReport
from ldp_client.documents.report import report_id_of
from tests.kit.answers import PROBLEM, problem, refusal
from tests.kit.collectors import AGE, REGION, TODAY, build_report, build_study, conflicting, device_report
from tests.kit.errors import raises

PATH = "/v1/studies/habits/reports"
EARLIER, OTHER = build_study(), build_study(id="other")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"digest": "0" * 64}, "digest"),
        ({"payloads": {"ever": None}}, "payloads.ever"),
        ({"payloads": {"nosuch": "AA=="}}, "payloads.nosuch"),
        ({"payloads": {"hours": "AAAA"}}, "payloads.hours"),
        ({"payloads": {"fruit": "CA=="}}, "payloads.fruit"),
        ({"public": {"region": "east"}}, "public.region"),
        ({"public": {"age": "42.0"}}, "public.age"),
        ({"public": {"age": "17"}}, "public.age"),
        ({"public": {"age": 42}}, "public.age"),
        ({"public": {"age": None}}, "public.age"),
        ({"public": {"ever": "yes"}}, "public.ever"),
    ],
    ids=str,
)
@pytest.mark.attack(8)
def test_an_invalid_report_is_refused_with_its_field(empty, changes, field):
    """Send values in clear that the study does not declare public: none is stored."""
    study = build_study(public=[REGION, AGE])
    empty.publish(study)
    document = device_report(study, region="north", age=42.5).to_document()
    for name, change in changes.items():
        if isinstance(change, dict):
            change = {key: one for key, one in (document[name] | change).items() if one is not None}
        document[name] = change
    refused = empty.client.put(f"{PATH}/{document['id']}", json=document)
    assert refusal(refused) == ("report-invalid", field)
    assert [one["field"] for one in empty.post([document]).json["failed"]] == [f"reports[0].{field}"]
    assert empty.exported() == []


def test_the_address_and_the_report_must_agree(habits, study):
    report = build_report(study)
    habits.publish(OTHER)
    for path, field in ((f"{PATH}/{'0' * 32}", "id"), (f"/v1/studies/other/reports/{report.id}", "study")):
        assert refusal(habits.client.put(path, json=report.to_document())) == ("report-invalid", field)


def test_a_bad_report_does_not_refuse_the_rest(habits, study):
    good = build_report(study)
    impossible = build_report(study, payloads={**good.payloads, "ever": b"\7"})
    batch = [impossible.to_document(), good.to_document(), {"id": "x"}, 7, conflicting(good).to_document()]
    result = habits.post(batch).get_json()
    assert (result["stored"], result["duplicates"]) == (1, 0)
    failures = [(one["id"], one["type"].removeprefix(PROBLEM), one["field"]) for one in result["failed"]]
    assert failures == [
        (impossible.id, "report-invalid", "reports[0].payloads.ever"),
        ("x", "report-invalid", "reports[2].format"),
        (None, "report-invalid", "reports[3]"),
        (good.id, "report-conflict", "reports[4].id"),
    ]
    assert habits.exported() == [good]
    for body, field in (([], "reports"), ({"reports": {}}, "reports"), ({"reports": [], "more": 1}, "more")):
        assert refusal(habits.client.post(PATH, json=body)) == ("batch-invalid", field)


@pytest.mark.attack(10)
def test_report_is_accepted_until_its_own_version_closes(empty):
    """Publish a version while reports of the one before are under way: each has the days of its document."""
    first = build_study(closes=(TODAY + timedelta(3)).isoformat())
    second = build_study(2, opens=(TODAY + timedelta(10)).isoformat())
    for study in (first, second):
        assert empty.publish(study).status_code == 201
    # A day early on the device's calendar, and up to a week late.
    for study, days, status in (
        (second, 0, 425),
        (first, 0, 201),
        (second, 8, 425),
        (second, 9, 201),
        (first, 3 + 7, 201),
    ):
        empty.day = TODAY + timedelta(days)
        answer = empty.put(build_report(study))
        assert answer.status_code == status, (study.version, days)
        assert ("Retry-After" in answer.headers) == (status == 425)
    assert empty.publish(build_study(3, closes=first.closes)).status_code == 201
    for days, status in ((10, 201), (11, 410)):
        empty.day = TODAY + timedelta(days)
        assert empty.put(build_report(first)).status_code == status


@pytest.mark.attack(10)
def test_report_of_version_lost_by_restore_is_kept(habits, study):
    """A restored database lost a version: senders who follow the advice keep the reports that answer it."""
    late = build_report(build_study(version=2))
    said = habits.put(late)
    assert refusal(said) == ("version-unknown", "version")
    assert "digest" not in said.json
    assert "drop" not in said.json["advice"].lower()
    sent = habits.post([late.to_document(), build_report(study).to_document()]).json
    assert (sent["stored"], [one["type"] for one in sent["failed"]]) == (1, [said.json["type"]])
    habits.publish(build_study(version=2))
    assert habits.put(late).status_code == 201


@pytest.mark.attack(16)
def test_report_is_not_stored_under_changed_document(habits, caplog):
    """Restore a database under a running server: one document's reports must not pass for another's."""
    second = build_study(2)
    habits.publish(second)
    assert [habits.put(build_report(study)).status_code for study in (EARLIER, second)] == [201, 201]
    habits.sql("UPDATE documents SET digest = :digest WHERE version = 2", digest="0" * 64)
    for answer in (habits.put(build_report(second)), habits.export(), habits.summary()):
        assert problem(answer) == (503, "unavailable")
    assert "has to be started again" in caplog.text
    assert habits.put(build_report(EARLIER)).status_code == 201


def upload(harness, *reports):
    packed = [harness.collector.rules.find(one.study, one.version).pack(one) for one in reports]
    return Upload(reports[0].study, packed)


@pytest.mark.attack(15)
def test_same_id_in_closed_and_open_version_does_not_fail_others(habits):
    """One sender gives one id to a refused and a good report: uploads in the same commit must not fail."""
    now = build_study(version=2, closes="2026-05-01")
    for study in (OTHER, now):
        habits.publish(study)
    refused = build_report(now)
    taken = build_report(EARLIER, id=refused.id)
    stranger, victim = upload(habits, refused, taken), upload(habits, build_report(OTHER))
    (said, stored), others = habits.collector.writer._store([stranger, victim])
    assert said.kind is STUDY_CLOSED
    assert [stored, *others] == [Receipt.STORED] * 2


@pytest.mark.attack(15)
def test_exception_of_one_report_reaches_only_its_sender(habits, monkeypatch, caplog):
    """An upload raises an error in a shared commit: only its sender gets it, and the log quotes no report."""
    habits.publish(OTHER)
    bad, *good = (build_report(study) for study in (EARLIER, EARLIER, OTHER, EARLIER))
    secret, genuine = bytes.fromhex(bad.id), intake.add_reports

    def fail(_session):
        raise DataError(str(secret), None, ValueError(bad.id))

    def planted(*arguments):
        if secret in {row[0] for row in arguments[-1]}:
            fail(None)
        return genuine(*arguments)

    monkeypatch.setattr(intake, "add_reports", planted)
    works = [
        upload(habits, good[0]),
        Change(("habits", bytes(16)), fail),
        upload(habits, bad, good[2]),
        upload(habits, good[1]),
        Change(("other", bytes(16)), lambda session: len(store.study_numbers(session))),
    ]
    first, broken, second, third, seen = habits.collector.writer._store(works)
    assert (first, third, seen) == ([Receipt.STORED], [Receipt.STORED], 2)
    assert second.kind is INTERNAL
    with raises(ProblemError, "internal"):
        raise intake.problem_of(broken)
    assert habits.summary().json["questions"]["ever"]["n"] == 1
    assert habits.exported() == [good[0]]
    assert "planted" in caplog.text
    assert not [word for word in (bad.id, str(secret)[2:-1]) if word in caplog.text]


def test_uploads_stored_separately_lock_rows_in_id_order():
    """Two processes store the same uploads one by one after storing them together failed."""
    packed = [PackedReport(bytes([place]) * 16, 1, b"") for place in (9, 3, 5)]
    order = []

    class Planted(intake.Intake):
        def _store_study(self, _session, _study_id, some, **_options):
            if len(some) > 1:
                raise ValueError("not together")
            order.extend(one.id for upload in some for one in upload.reports)
            return [upload.reports[0].id for upload in some]

    session = SimpleNamespace(begin_nested=contextlib.nullcontext)
    uploads = [Upload(EARLIER.id, [one]) for one in packed]
    stored = Planted(None, None, None, None, b"")._store_apart(session, EARLIER.id, uploads)
    assert stored == [one.id for one in packed]
    assert order == sorted(order)


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
    monkeypatch.setattr(context, "TokenBucket", lambda rate: TokenBucket(rate, lambda: 0.0))
    monkeypatch.setattr(context, "DELETION_RATE", 4.0)
    harness = make_harness(published=[study])
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
