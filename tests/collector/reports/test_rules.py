"""Reports are held against their study: public values, one question a device, any mechanism."""

import json

import pytest

from collector.reports import rules as rules_module
from collector.reports.rules import Rules
from ldp_client.documents.errors import ReportError
from schemas import Report
from tests.kit.answers import problem
from tests.kit.collectors import build_study, device_report
from tests.kit.errors import raises

REGION = {"id": "region", "choices": ["north", 'the "south", {"digest":"', "west"]}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "0.5"}
STUDY = build_study(public=[REGION, AGE])
PATH = "/v1/studies/habits/reports"


def report_of(region="north"):
    return device_report(STUDY, region=region, age=42.5)


@pytest.fixture
def harness(empty):
    empty.publish(STUDY)
    empty.put(report_of())
    return empty


@pytest.mark.parametrize(
    ("public", "field"),
    [
        ({"region": "east", "age": "42"}, "public.region"),
        ({"region": "north", "age": "42.0"}, "public.age"),
        ({"region": "north", "age": "17"}, "public.age"),
        ({"region": "north"}, "public.age"),
        ({}, "public.region"),
        ({"region": "north", "age": "42", "ever": "yes"}, "public.ever"),
        ({"region": "north", "age": 42}, "public.age"),
    ],
)
@pytest.mark.attack(8)
def test_bad_value_is_422_with_its_field_and_not_stored(harness, public, field):
    """Send values in clear that the study does not declare public: none is stored."""
    document = report_of().to_document()
    document.pop("public")
    document.update({"public": public} if public else {})
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    refused = harness.client.put(f"{PATH}/{document['id']}", data=text, content_type="application/json")
    assert problem(refused) == (422, "report-invalid")
    assert refused.get_json(force=True)["field"] == field
    failed = harness.client.post(PATH, data=f'{{"reports":[{text}]}}', content_type="application/json").json[
        "failed"
    ]
    assert [one["field"] for one in failed] == [f"reports[0].{field}"]
    assert len(harness.exported()) == 1


def test_study_without_public_fields_rejects_values(habits, study, make_report):
    report = make_report(study)
    report.public = {"region": "north"}
    answer = habits.put(report)
    assert (answer.status_code, answer.json["field"]) == (422, "public.region")


@pytest.mark.parametrize(
    "payloads", [{"ever": b"\7"}, {"fruit": b"\xff"}, {"hours": b"\x80\0\0\0"}, {"ever": b"\0\0"}]
)
def test_impossible_payloads_are_rejected_by_the_parser(payloads):
    study = build_study(sample_one_question=True)
    rules = Rules.of(study)
    report = Report("ab" * 16, study.id, 1, study.digest, payloads)
    assert rules.form.read(report.to_json().encode()) is None
    with raises(ReportError, "report.payload_impossible", field=f"payloads.{next(iter(payloads))}"):
        rules.pack(report)


def test_more_than_one_payload_is_refused(make_report):
    study = build_study(sample_one_question=True)
    with pytest.raises(ReportError, match="exactly one"):
        Rules.of(study).pack(make_report(study))


def test_kept_summaries_are_limited_by_bytes(habits, monkeypatch):
    kept = habits.collector.rules.find("habits", 1).tally
    assert kept.is_kept
    monkeypatch.setattr(rules_module, "MOST_KEPT_BYTES", 8 * kept.size - 1)
    assert not kept.is_kept
