"""Reports are held against their study, and packed by their places."""

import gc
import json
import os
import struct
import tracemalloc
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.reports import rules as rules_module
from collector.reports.packing import MOST_REMEMBERED_BYTES, OneQuestionLayout, PublicPlaces
from collector.reports.rules import Rules
from ldp_client.documents.errors import ReportError
from schemas import Report
from tests.kit.answers import refusal
from tests.kit.collectors import AGE, REGION, STRATUM, build_report, build_study, device_report
from tests.kit.errors import raises

ASKING = build_study(public=[REGION, AGE])
PATH = "/v1/studies/habits/reports"


def numbers(*places):
    return struct.pack(">3I", *places)


def test_public_values_are_packed_by_place():
    places = PublicPlaces(build_study(public=[REGION, AGE, STRATUM]).public)
    packed = places.pack({"region": "west", "age": "99"})
    assert (packed, places.size) == (numbers(3, 163, 0), 12)
    assert places.unpack(packed) == {"region": "west", "age": "99"}
    assert places.filled(packed + b"xy", {"stratum": "country", "other": "x"}) == numbers(3, 163, 2) + b"xy"
    assert places.agrees(packed + b"x", numbers(3, 163, 2) + b"x")
    assert not places.agrees(packed + b"x", numbers(3, 162, 2) + b"x")
    assert not places.agrees(packed + b"x", numbers(3, 163, 2) + b"y")
    assert list(places.cells([numbers(1, 1, 1), numbers(1, 1, 2), numbers(3, 163, 2)])) == [0, 1, 977]


def test_questions_of_equal_size_are_not_confused():
    layout = OneQuestionLayout([("a", 2), ("b", 2), ("c", 1)])
    packed = [layout.pack(one) for one in ({"b": b"xy"}, {"c": b"z"}, {"a": b"\0\0"})]
    assert packed == [b"\x01xy", b"\x02z\x00", b"\x00\x00\x00"]
    assert [layout.asked(one) for one in packed] == ["b", "c", "a"]


def test_packed_reports_of_one_question_have_one_size():
    study = build_study(sample_one_question=True)
    rules = Rules.of(study)
    reports = [device_report(study) for _ in range(60)]
    packed = [rules.pack(report).payloads for report in reports]
    assert {len(one) for one in packed} == {rules.layout.size} == {1 + 4}
    for name, part in rules.layout.split(packed).items():
        expected = [report.payloads[name] for report in reports if name in report.payloads]
        assert [bytes(row) for row in part] == expected


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SENDS, BYTES = 20, 200_000


def batch(reports):
    return b'{"reports":[' + b",".join(report.to_json().encode() for report in reports) + b"]}"


@pytest.mark.parametrize("public", [[], [REGION, AGE]])
@pytest.mark.parametrize("sample_one_question", [False, True])
def test_reports_of_any_study_are_read_without_a_parser(sample_one_question, public):
    study = build_study(sample_one_question=sample_one_question, **({"public": public} if public else {}))
    rules = Rules.of(study)
    for region in REGION["choices"] * 4:
        report = device_report(study, **({"region": region, "age": 42.5} if public else {}))
        body = report.to_json().encode()
        packed = rules.form.read(body)
        assert packed == rules.form.read(body.rstrip() + b"   "[: rules.form.size - len(body)])
        assert packed == rules.pack(report)
        assert rules.form.write(packed) == body.rstrip()
        assert rules.form.read(json.dumps(report.to_document()).encode()) is None
        assert rules.form.read(body.replace(b'"payloads"', b'"payl0ads"')) is None


def test_other_spellings_and_impossible_reports_fall_back_to_the_parser(study, make_report):
    rules = Rules.of(study)
    report = make_report(study, id="ab" * 16)
    body = report.to_json()
    spellings = [body.replace("ab" * 16, "AB" * 16), body.replace('"ever"', '"even"')]
    start = body.index('"ever":"') + len('"ever":"')
    spellings += [body[:start] + text + body[start + 4 :] for text in ("AB==", "A===", "AA= ", "====")]
    impossible = make_report(study, payloads={**report.payloads, "ever": b"\2"})
    for text in [*spellings, impossible.to_json()]:
        assert rules.form.read(text.encode()) is None
    two = batch([report, report])
    for text in (two[:-2] + b"} ", two.replace(b"},{", b"} {"), batch([report, impossible])):
        assert rules.form.read_batch(text) is None


@FUZZ
@given(
    place=st.integers(0, 10**4),
    noise=st.binary(max_size=3),
    removed=st.integers(0, 3),
    many=st.booleans(),
    public=st.booleans(),
)
def test_damaged_bodies_read_as_the_parser_reads_them(place, noise, removed, many, public):
    study = ASKING if public else build_study()
    rules = Rules.of(study)
    answers = {"region": REGION["choices"][1], "age": 42.5} if public else {}
    reports = [device_report(study, **answers) for _ in range(3)]
    body = bytearray(batch(reports) if many else reports[0].to_json().encode())
    place %= len(body)
    body[place : place + removed] = noise
    read = (rules.form.read_batch if many else rules.form.read)(bytes(body))
    if read is not None:
        document = json.loads(bytes(body))
        members = [
            rules.pack(Report.from_document(one)) for one in (document["reports"] if many else [document])
        ]
        assert read == (members if many else members[0])


@contextmanager
def keeping_less_than(most):
    """What is kept once the block is left is less."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < most


@pytest.mark.attack(15)
@pytest.mark.slow
@pytest.mark.parametrize("junk", ["z%s", '{"region":"%s"}'])
def test_junk_values_are_rejected_and_not_cached(empty, junk):
    """Fill a collector's memory with texts of public values: it remembers only those that the study lists."""
    study = build_study(public=[{**REGION, "choices": ["north", "south"]}])
    empty.publish(study)
    honest = device_report(study, region="north")
    text = honest.to_json().rstrip()

    def send(public):
        report_id = os.urandom(16).hex()
        body = text.replace(honest.id, report_id).replace('{"region":"north"}', public)
        path = f"/v1/studies/habits/reports/{report_id}"
        return empty.client.put(path, data=body, content_type="application/json").status_code

    assert send('{"region":"south"}') == 201
    for public in ("[" * 100_000, '{"region":"\\ud800"}', "1" * 15):
        assert send(public) in (400, 413, 422)
    with keeping_less_than(BYTES * SENDS / 10):
        for number in range(SENDS):
            assert send(junk % ("x" * BYTES + str(number))) in (400, 422)


@pytest.mark.attack(15)
@pytest.mark.slow
def test_cache_of_listed_values_stays_within_limit():
    """Send all combinations of long listed values: what is remembered of them stays within a limit."""
    fields = [{"id": f"f{n}", "choices": ["𝄞" * 199 + end for end in "ab"]} for n in range(16)]
    study = build_study(public=fields)
    rules = Rules.of(study)
    first = device_report(study, **{field["id"]: field["choices"][0] for field in fields}).to_json()
    with keeping_less_than(1.5 * MOST_REMEMBERED_BYTES):
        for number in range(2 * MOST_REMEMBERED_BYTES // len(first.encode())):
            other = first
            for bit, field in enumerate(fields):
                head = f'"{field["id"]}":"'
                other = other.replace(head + field["choices"][0], head + field["choices"][number >> bit & 1])
            assert rules.form.read(other.encode()) is not None


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
def test_bad_value_is_422_with_its_field_and_not_stored(empty, public, field):
    """Send values in clear that the study does not declare public: none is stored."""
    empty.publish(ASKING)
    document = device_report(ASKING, region="north", age=42.5).to_document()
    document.pop("public")
    document.update({"public": public} if public else {})
    refused = empty.client.put(f"{PATH}/{document['id']}", json=document)
    assert refusal(refused) == ("report-invalid", field)
    assert [one["field"] for one in empty.post([document]).json["failed"]] == [f"reports[0].{field}"]
    assert empty.exported() == []


def test_study_without_public_fields_rejects_values(habits, study, make_report):
    report = make_report(study)
    report.public = {"region": "north"}
    assert refusal(habits.put(report)) == ("report-invalid", "public.region")


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
    with pytest.raises(ReportError, match="exactly one"):
        rules.pack(build_report(study))


def test_kept_summaries_are_limited_by_bytes(habits, monkeypatch):
    kept = habits.collector.rules.find("habits", 1).tally
    assert kept.is_kept
    monkeypatch.setattr(rules_module, "MOST_KEPT_BYTES", 8 * kept.size - 1)
    assert not kept.is_kept
