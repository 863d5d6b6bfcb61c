"""Reports are held against their study, and packed by their places."""

import gc
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.reports import rules as rules_module
from collector.reports.packing import MOST_REMEMBERED_BYTES
from collector.reports.rules import Rules
from schemas import Report
from tests.kit.collectors import AGE, REGION, build_report, build_study, device_report


def batch(reports):
    return b'{"reports":[' + b",".join(report.to_json().encode() for report in reports) + b"]}"


@pytest.mark.parametrize("public", [[], [REGION, AGE]])
@pytest.mark.parametrize("sample_one_question", [False, True])
def test_reports_of_any_study_are_read_without_a_parser(sample_one_question, public):
    study = build_study(sample_one_question=sample_one_question, **({"public": public} if public else {}))
    rules = Rules(study)
    for region in REGION["choices"] * 4:
        report = device_report(study, **({"region": region, "age": 42.5} if public else {}))
        body = report.to_json().encode()
        packed = rules.form.read(body)
        assert packed == rules.form.read(body.rstrip() + b"   "[: rules.form.size - len(body)])
        assert packed == rules.pack(report)
        assert rules.form.write(packed) == body.rstrip()
        assert rules.form.read(json.dumps(report.to_document()).encode()) is None
        assert rules.form.read(body.replace(b'"payloads"', b'"payl0ads"')) is None


def test_other_spellings_and_impossible_reports_fall_back_to_the_parser(study):
    form = Rules(study).form
    report = build_report(study, id="ab" * 16)
    body, two = report.to_json(), batch([report, report])
    start = body.index('"ever":"') + len('"ever":"')
    impossible = build_report(study, payloads={**report.payloads, "ever": b"\2"})
    for text in (
        body.replace("ab" * 16, "AB" * 16),
        body.replace('"ever"', '"even"'),
        *(body[:start] + text + body[start + 4 :] for text in ("AB==", "A===", "AA= ", "====")),
        impossible.to_json(),
    ):
        assert form.read(text.encode()) is None
    for text in (two[:-2] + b"} ", two.replace(b"},{", b"} {"), batch([report, impossible])):
        assert form.read_batch(text) is None
    asking = build_study(public=[REGION, AGE])
    body = device_report(asking, region="west", age=42.5).to_json()
    for public in ('"region":"west","age":"42.5"', '"age":"42.5","region":"east"'):
        other = body.replace('"age":"42.5","region":"west"', public)
        assert other != body
        assert Rules(asking).form.read(other.encode()) is None
    of_one = build_study(sample_one_question=True)
    for payloads in ({"ever": b"\7"}, {"fruit": b"\xff"}, {"hours": b"\x80\0\0\0"}, {"ever": b"\0\0"}):
        answer = Report("ab" * 16, of_one.id, 1, of_one.digest, payloads).to_json()
        assert Rules(of_one).form.read(answer.encode()) is None


@settings(max_examples=150, deadline=None)
@given(
    place=st.integers(0, 10**4),
    noise=st.binary(max_size=3),
    removed=st.integers(0, 3),
    many=st.booleans(),
    public=st.booleans(),
)
def test_damaged_bodies_read_as_the_parser_reads_them(place, noise, removed, many, public):
    study = build_study(public=[REGION, AGE]) if public else build_study()
    rules = Rules(study)
    answers = {"region": REGION["choices"][1], "age": 42.5} if public else {}
    reports = [device_report(study, **answers) for _ in range(3)]
    body = bytearray(batch(reports) if many else reports[0].to_json().encode())
    place %= len(body)
    body[place : place + removed] = noise
    read = (rules.form.read_batch if many else rules.form.read)(bytes(body))
    if read is not None:
        document = json.loads(bytes(body))
        members = document["reports"] if many else [document]
        assert (read if many else [read]) == [rules.pack(Report.from_document(one)) for one in members]


@pytest.mark.attack(15)
@pytest.mark.slow
def test_remembered_values_stay_within_limit():
    """Send all combinations of long listed values, and as many that are not listed, to fill the memory."""
    fields = [{"id": f"f{n}", "choices": ["𝄞" * 199 + end for end in "ab"]} for n in range(16)]
    study = build_study(public=fields)
    rules = Rules(study)
    first = device_report(study, **{field["id"]: field["choices"][0] for field in fields}).to_json()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2 * MOST_REMEMBERED_BYTES // len(first.encode())):
            other = first
            for bit, field in enumerate(fields):
                head = f'"{field["id"]}":"'
                other = other.replace(head + field["choices"][0], head + field["choices"][number >> bit & 1])
            assert rules.form.read(other.encode()) is not None
            assert rules.form.read(other.replace('"f0":"𝄞', f'"f0":"{number}').encode()) is None
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 1.5 * MOST_REMEMBERED_BYTES


def test_rules_of_few_documents_are_kept(habits, monkeypatch):
    habits.publish(build_study(2))
    monkeypatch.setattr(rules_module, "MOST_BYTES", 1)
    book = rules_module.RuleBook(habits.collector.database)
    for version in (1, 2, 1):
        found = book.find("habits", version)
        assert found.study.version == version
        assert book.find_in_use("habits", found.study.digest.encode()) is found
        assert len(book._rules) == len(book._by_digest) == 1
