"""Studies that ask each device one question: reports with one payload, whichever it is."""

import csv
import io
import json
from collections import Counter

import pytest

from collector.reports.rules import Rules
from collector.storage.packing import Layout, OneQuestionLayout
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import ReportError
from schemas import Report
from summaries import summarize
from tests.collector.conftest import ANSWERS, build_study
from tests.kit.errors import raises
from tests.statistics import seeded


@pytest.fixture
def one_study():
    return build_study(sample_one_question=True)


@pytest.fixture
def harness(empty):
    return empty


@pytest.fixture
def rules(one_study):
    return Rules.of(one_study)


@pytest.fixture
def reports(one_study, rules):
    """Reports of devices, with every question among them."""
    source = seeded("reports")
    found = [perturb_answers(one_study, rules.mechanisms, ANSWERS, source) for _ in range(60)]
    assert {name for report in found for name in report.payloads} == set(rules.mechanisms)
    return found


def test_packed_reports_have_one_size_and_round_trip(rules, reports):
    packed = [rules.pack(report) for report in reports]
    assert {len(one.payloads) for one in packed} == {rules.layout.size} == {1 + 4}
    for report, one in zip(reports, packed):
        found = {name: rules.layout.find(one.payloads, name) for name in rules.mechanisms}
        assert {name: payload for name, payload in found.items() if payload is not None} == report.payloads
    parts = rules.layout.split([one.payloads for one in packed])
    for name, part in parts.items():
        expected = [report.payloads[name] for report in reports if name in report.payloads]
        assert [bytes(row) for row in part] == expected


def test_canonical_form_round_trips_each_question(rules, reports):
    for report in reports:
        body = report.to_json().encode()
        assert rules.form.read(body) == rules.pack(report)
        assert rules.form.read(body + b"   ") == rules.pack(report)
        assert rules.form.write(rules.pack(report)) == body.rstrip()
        assert rules.form.read(body.replace(b'"payloads"', b'"payl0ads"')) is None
    batch = b'{"reports":[' + reports[0].to_json().encode() + b"]}"
    assert rules.form.read_batch(batch) is None


def test_impossible_payloads_are_rejected_by_the_parser(rules, one_study):
    for payloads in (
        {"ever": b"\x07"},
        {"fruit": b"\xff"},
        {"hours": b"\x80\x00\x00\x00"},
        {"ever": b"\x00\x00"},
    ):
        report = Report("ab" * 16, one_study.id, 1, one_study.digest, payloads)
        assert rules.form.read(report.to_json().encode()) is None
        with raises(ReportError, "report.payload_impossible", field=f"payloads.{next(iter(payloads))}"):
            rules.pack(report)


def test_more_than_one_payload_is_refused(rules, one_study, make_report):
    with pytest.raises(ReportError, match="exactly one"):
        rules.pack(make_report(one_study))


def test_questions_of_equal_size_are_not_confused():
    layout = OneQuestionLayout([("a", 2), ("b", 2), ("c", 1)])
    packed = [layout.pack(one) for one in ({"b": b"xy"}, {"c": b"z"}, {"a": b"\0\0"})]
    assert packed == [b"\x01xy", b"\x02z\x00", b"\x00\x00\x00"]
    assert [layout.find(one, "a") for one in packed] == [None, None, b"\0\0"]
    assert layout.find(packed[0], "unknown") is None
    assert Layout([("a", 2)]).find(b"xy", "b") is None


def test_reports_are_stored_once_exported_and_summarized(harness, one_study, reports):
    assert harness.publish(one_study).status_code == 201
    for number, report in enumerate(reports[:20]):
        padded = report.to_json() + " " * (number % 3)
        url = f"/v1/studies/habits/reports/{report.id}"
        assert harness.client.put(url, data=padded, content_type="application/json").status_code == 201
        assert harness.client.put(url, data=padded, content_type="application/json").status_code == 200
    outcome = harness.post([report.to_document() for report in reports])
    assert outcome.get_json()["stored"] == 40
    exported = harness.exported()
    assert sorted(exported, key=lambda report: report.id) == sorted(reports, key=lambda report: report.id)
    assert harness.summary().text == summarize(one_study, reports).to_json()
    counts = Counter(name for report in reports for name in report.payloads)
    parts = json.loads(harness.summary().text)["questions"]
    assert {name: part["n"] for name, part in parts.items()} == dict(counts)
    harness.withdraw(reports[0].id)
    assert harness.summary().text == summarize(one_study, reports[1:]).to_json()


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_exports_leave_unanswered_questions_empty(harness, one_study, reports, form):
    harness.publish(one_study)
    harness.post([report.to_document() for report in reports])
    data = harness.client.get(f"/v1/studies/habits/export?format={form}", headers=harness.operator).data
    assert payloads_in(data, form) == {report.id: report.payloads for report in reports}


def payloads_in(data, form):
    if form == "csv":
        from base64 import b64decode

        rows = csv.DictReader(io.StringIO(data.decode()))
        return {
            row["report_id"]: {
                name.removeprefix("payloads."): b64decode(text)
                for name, text in row.items()
                if name.startswith("payloads.") and text
            }
            for row in rows
        }
    from pyarrow import ipc, parquet

    buffer = io.BytesIO(data)
    table = parquet.read_table(buffer) if form == "parquet" else ipc.open_stream(buffer).read_all()
    return {
        row["report_id"]: {name: value for name, value in row["payloads"].items() if value is not None}
        for row in table.to_pylist()
    }


def test_study_that_needs_whole_reports_has_no_summary(harness):
    from tests import studies

    study = build_study(questions=[studies.YES_NO_RECORD])
    harness.publish(study)
    response = harness.summary()
    assert response.status_code == 409
    assert response.get_json()["type"] == "urn:ldpkit:problem:summary-impossible"
    assert response.get_json()["field"] == "questions.chance"
