"""One sender's upload or withdrawal makes those of others fail that are committed together with it.

Defence: The collector: then tries each upload and each deletion separately, so that only the failing one
is refused (500); gives a batch the same answers as single uploads; its log, and that of a server when an
export fails, has error types and lines of code, never their messages.
"""

from __future__ import annotations

import random
import traceback

import pytest
from sqlalchemy.exc import DataError

from collector.exports.formats import FORMATS, CutOffError, Format
from collector.operator.inviting import invite
from collector.problems import INTERNAL, INVITATION_NEEDED, ProblemError
from collector.reports import intake
from collector.reports.intake import Receipt
from collector.reports.writer import Change, Upload
from collector.storage.keys import hash_key
from tests.collector.answered import AwayError
from tests.collector.conftest import INVITATION_KEY, build_report, build_study
from tests.kit.errors import raises

EARLIER = build_study()
OTHER = build_study(id="other")
SHUT = {"over": {"closes": "2026-05-01"}, "to come": {"opens": "2026-07-01"}}


@pytest.fixture
def collecting(make_harness, database_url):
    harness = make_harness(database=database_url, lock_timeout=10)
    for study in (EARLIER, OTHER):
        harness.publish(study)
    return harness


def packed(harness, report):
    return harness.collector.rules.find(report.study, report.version).pack(report)


def upload(harness, *reports, invitation=None):
    return Upload(reports[0].study, [packed(harness, report) for report in reports], invitation)


@pytest.mark.parametrize("shut", SHUT)
def test_same_id_in_closed_and_open_version_does_not_fail_others(make_harness, shut):
    """The id of a refused report used to be looked up among those that may be stored."""
    harness = make_harness()
    now = build_study(version=2, **SHUT[shut])
    for study in (EARLIER, now, OTHER):
        harness.publish(study)
    refused = build_report(now)
    taken = build_report(EARLIER, id=refused.id)
    stranger, victim = upload(harness, refused, taken), upload(harness, build_report(OTHER))
    (said, stored), others = harness.collector.writer._store([stranger, victim])
    assert said.kind.status == {"over": 410, "to come": 425}[shut]
    assert [stored, *others] == [Receipt.STORED] * 2


@pytest.mark.slow
@pytest.mark.parametrize("shut", SHUT)
def test_batch_gets_the_same_answers_as_single_uploads(make_harness, shut):
    dice = random.Random(7)
    together, apart = make_harness("together.sqlite3"), make_harness("apart.sqlite3")
    for number in range(15):
        dates = ({}, {"closes": "2026-07-01"}, SHUT[shut])
        versions = [build_study(1 + index, id=f"s{number}", **more) for index, more in enumerate(dates)]
        for harness in (together, apart):
            assert [harness.publish(study).status_code for study in versions] == [201, 201, 201]
        pool = [build_report(dice.choice(versions)) for _ in range(2)]
        pool += [build_report(dice.choice(versions), id=one.id, secret=one.secret) for one in pool * 2]
        sent = [dice.choice(pool) for _ in range(7)]
        withdrawn = dice.choice(pool)
        for harness in (together, apart):
            assert harness.withdraw(withdrawn.id, f"s{number}", withdrawn.secret).status_code == 200
        answer = together.post([report.to_document() for report in sent], f"s{number}").json
        found = {int(one["field"].split("]")[0][8:]): one["type"] for one in answer["failed"]}
        single = [apart.put(report) for report in sent]
        refused = {index: one for index, one in enumerate(single) if one.status_code > 201}
        expected = {index: one.get_json(force=True)["type"] for index, one in refused.items()}
        assert found == expected
        assert answer["stored"] == sum(one.status_code == 201 for one in single)


def fault(kind, report):
    text = f"Key (id)=({report.id}) {bytes.fromhex(report.id)!r}"
    own, of_statement = KeyError(bytes.fromhex(report.id)), DataError(text, None, ValueError(text))
    return {"own": own, "statement": of_statement}[kind]


@pytest.mark.parametrize("kind", ["own", "statement"])
def test_exception_of_one_report_reaches_only_its_sender(collecting, monkeypatch, caplog, kind):
    bad, gone, kept = (build_report(EARLIER) for _ in range(3))
    good = [build_report(study) for study in (EARLIER, OTHER, EARLIER)]
    collecting.post([gone.to_document(), kept.to_document()])
    genuine = intake.add_reports

    def planted(*arguments):
        if bytes.fromhex(bad.id) in {row[0] for row in arguments[-1]}:
            raise fault(kind, bad)
        return genuine(*arguments)

    monkeypatch.setattr(intake, "add_reports", planted)

    def raise_it(_session):
        raise fault(kind, bad)

    def see(session):
        return len(intake.queries.study_numbers(session))

    works = [
        upload(collecting, good[0]),
        Change(("habits", bytes.fromhex(kept.id)), raise_it),
        upload(collecting, bad, good[2]),
        upload(collecting, good[1]),
        Change(("other", bytes.fromhex(gone.id)), see),
    ]
    first, broken, second, third, seen = collecting.collector.writer._store(works)
    assert (first, third, seen) == ([Receipt.STORED], [Receipt.STORED], 2)
    assert second.kind is INTERNAL
    with raises(ProblemError, "internal"):
        raise intake.problem_of(broken)
    assert collecting.summary().json["questions"]["ever"]["n"] == 3
    assert {report.id for report in collecting.exported()} == {good[0].id, gone.id, kept.id}
    assert type(fault(kind, bad)).__name__ in caplog.text
    assert "planted" in caplog.text
    for written in (bad.id, repr(bytes.fromhex(bad.id)), str(bytes.fromhex(bad.id))[2:-1]):
        assert written not in caplog.text


def test_failed_deletion_does_not_affect_upload_receipts(collecting):
    def away(_session):
        raise AwayError

    works = [Change(("habits", bytes(16)), away), upload(collecting, build_report(EARLIER))]
    failed, stored = collecting.collector.writer._store(works)
    assert (type(failed), stored) == (AwayError, [Receipt.STORED])


def test_unavailable_database_is_tried_once_for_all_uploads(collecting, monkeypatch):
    calls = []

    def away(*_arguments):
        calls.append(1)
        raise AwayError

    monkeypatch.setattr(intake, "add_reports", away)
    works = [upload(collecting, build_report(EARLIER)) for _ in range(20)]
    with pytest.raises(AwayError):
        collecting.collector.writer._store(works)
    assert len(calls) == 1


def test_invitation_of_one_report_admits_no_other_with_same_id(make_harness):
    harness = make_harness(invitation_key=INVITATION_KEY)
    harness.publish(EARLIER)
    with harness.collector.database.write() as session:
        (word,) = invite(session, "habits", 1, INVITATION_KEY.encode())
    own = build_report(EARLIER)
    changed = {**own.payloads, "ever": bytes([1 - own.payloads["ever"][0]])}
    other = build_report(EARLIER, id=own.id, payloads=changed)
    works = [upload(harness, other), upload(harness, own, invitation=hash_key(word))]
    outcomes = [result[0] for result in harness.collector.writer._store(works)]
    assert outcomes[0].kind is INVITATION_NEEDED
    assert harness.collector.writer._store(works[1:])[0][0] in (Receipt.STORED, Receipt.DUPLICATE)
    assert [report.payloads for report in harness.exported()] == [own.payloads]


def test_failed_export_leaves_no_report_in_the_log(make_harness, monkeypatch, caplog):
    """Granian logs exceptions that leave a stream, with their causes."""
    harness = make_harness()
    harness.publish(EARLIER)
    report = build_report(EARLIER)
    assert harness.put(report).status_code == 201

    def failing(export):
        yield b"{}\n"
        raise KeyError(report.id, export)

    monkeypatch.setitem(FORMATS, "ndjson", Format("application/x-ndjson", failing))
    with pytest.raises(CutOffError) as left:
        assert harness.client.get("/v1/studies/habits/export", headers=harness.operator).data
    written = "".join(traceback.format_exception(left.value)) + caplog.text
    assert "an export was cut off: internal" in written
    assert "builtins.KeyError" in caplog.text
    assert report.id not in written
