"""The fixed-place reader agrees with the parser, or leaves the body to it."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.reports.canonical_form import digest_of
from collector.reports.rules import Rules
from ldp_client.documents.errors import DocumentError
from schemas import Report

FUZZ = settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def rules(study):
    return Rules.of(study)


def batch(reports):
    return b'{"reports":[' + b",".join(report.to_json().encode() for report in reports) + b"]}"


def parsed(rules, body):
    try:
        return rules.pack(Report.from_json(body))
    except DocumentError:
        return None


def test_a_canonical_report_is_read_and_written(rules, study, make_report):
    report = make_report(study)
    body = report.to_json().encode()
    assert rules.form.read(body) == rules.pack(report)
    assert rules.form.write(rules.pack(report)) == body
    assert digest_of(body) == study.digest.encode()


@pytest.mark.parametrize("count", [1, 2, 50])
def test_a_canonical_batch_is_read(rules, study, make_report, count):
    reports = [make_report(study) for _ in range(count)]
    assert rules.form.read_batch(batch(reports)) == [rules.pack(report) for report in reports]
    assert digest_of(batch(reports)) == study.digest.encode()


def test_non_canonical_spellings_fall_back_to_the_parser(rules, study, make_report):
    report = make_report(study, id="ab" * 16)
    document = report.to_document()
    body = report.to_json()
    assert rules.form.read(json.dumps(document).encode()) is None
    assert rules.form.read(body.replace("ab" * 16, "AB" * 16).encode()) is None
    assert rules.form.read(body.replace('"ever"', '"even"').encode()) is None
    assert rules.form.read_batch(json.dumps({"reports": [document]}).encode()) is None
    assert rules.form.read_batch(batch([report, report])[:-2] + b"} ") is None
    assert rules.form.read_batch(batch([report, report]).replace(b"},{", b"} {")) is None


def test_base64_with_stray_bits_falls_back_to_the_parser(rules, study, make_report):
    body = make_report(study).to_json()
    start = body.index('"ever":"') + len('"ever":"')
    for text in ("AB==", "A===", "AA= ", "====", "A A="):
        assert rules.form.read((body[:start] + text + body[start + 4 :]).encode()) is None


def test_impossible_report_falls_back_to_the_parser(rules, study, make_report):
    good = make_report(study)
    bad = make_report(study, payloads={**good.payloads, "ever": b"\2"})
    assert rules.form.read(bad.to_json().encode()) is None
    assert rules.form.read_batch(batch([good, bad])) is None


@FUZZ
@given(place=st.integers(0, 10**4), noise=st.binary(min_size=1, max_size=3))
def test_damaged_report_reads_as_the_parser_reads_it(rules, study, make_report, place, noise):
    body = bytearray(make_report(study).to_json().encode())
    place %= len(body)
    body[place : place + len(noise)] = noise
    read = rules.form.read(bytes(body))
    assert read is None or read == parsed(rules, bytes(body))


@FUZZ
@given(place=st.integers(0, 10**4), noise=st.binary(min_size=1, max_size=2))
def test_damaged_batch_reads_as_the_parser_reads_it(rules, study, make_report, place, noise):
    body = bytearray(batch([make_report(study) for _ in range(3)]))
    place %= len(body)
    body[place : place + len(noise)] = noise
    read = rules.form.read_batch(bytes(body))
    if read is not None:
        members = json.loads(bytes(body))["reports"]
        assert read == [rules.pack(Report.from_document(member)) for member in members]


@FUZZ
@given(body=st.binary(max_size=700))
def test_random_bytes_fall_back_to_the_parser(rules, body):
    digest_of(body)
    assert rules.form.read(body) is None
    assert rules.form.read_batch(b'{"reports":[' + body + b"]}") in (None, [])
