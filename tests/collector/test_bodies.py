"""Bodies as they are and compressed; every decoder against hostile input."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.problems import ProblemError
from collector.views.bodies import inflate, parse_reports
from tests.kit.errors import raises

LIMIT = 100_000


@pytest.fixture
def batch(study, make_report):
    return json.dumps({"reports": [make_report(study).to_document() for _ in range(4)]}).encode()


def kind_of(response):
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


def post(harness, body, form="application/json", encoding=None):
    headers = {"Content-Encoding": encoding} if encoding else {}
    return harness.client.post("/v1/studies/habits/reports", data=body, content_type=form, headers=headers)


def gzipped(body):
    return gzip.compress(body)


COMPRESSIONS = [("gzip", gzipped)]


@pytest.mark.parametrize("form", ["application/cbor", "text/plain", "application/octet-stream"])
def test_body_that_is_not_json_is_415(habits, study, make_report, form):
    body = make_report(study).to_json().encode()
    refused = (415, "media-type-unsupported")
    assert kind_of(post(habits, b'{"reports":[' + body + b"]}", form)) == refused
    path = f"/v1/studies/habits/reports/{json.loads(body)['id']}"
    assert kind_of(habits.client.put(path, data=body, content_type=form)) == refused
    published = habits.client.post("/v1/studies", data=b"{}", content_type=form, headers=habits.operator)
    assert kind_of(published) == refused
    assert habits.exported() == []


@pytest.mark.parametrize(("encoding", "compress"), COMPRESSIONS)
def test_compressed_bodies(habits, study, make_report, encoding, compress):
    reports = [make_report(study) for _ in range(20)]
    body = json.dumps({"reports": [report.to_document() for report in reports]}).encode()
    assert post(habits, compress(body), encoding=encoding).get_json()["stored"] == 20
    report = make_report(study)
    response = habits.client.put(
        f"/v1/studies/habits/reports/{report.id}",
        data=compress(report.to_json().encode()),
        content_type="application/json",
        headers={"Content-Encoding": encoding},
    )
    assert response.status_code == 201


@pytest.mark.parametrize(("encoding", "compress"), COMPRESSIONS)
def test_compression_bomb_is_413_and_not_inflated(make_harness, encoding, compress):
    harness = make_harness(body_limit=LIMIT)
    bomb = compress(b" " * 50_000_000)
    assert len(bomb) < LIMIT
    assert kind_of(post(harness, bomb, encoding=encoding)) == (413, "body-too-large")


MANY = 2_200_000


@pytest.mark.parametrize(
    "body",
    [
        b'{"reports":[' + b"[]," * MANY + b"{}]}",
        b'{"reports":[' + b"1," * MANY + b"{}]}",
        b'{"reports":[' + b"{}," * 100_000 + b"{}]}",
    ],
)
def test_a_body_of_very_many_small_values_is_413(habits, body):
    """A few kilobytes of gzip would become gigabytes of objects."""
    assert len(gzipped(body)) < 20_000
    assert kind_of(post(habits, gzipped(body), encoding="gzip")) == (413, "body-too-large")


def test_the_limit_of_values_is_exact():
    """A thousand, and one for every eight bytes."""
    body = b'{"reports":[' + b"1," * 1333 + b"1]}"
    assert parse_reports(body) == {"reports": [1] * 1334}
    with raises(ProblemError, "body-too-large", "1335"):
        parse_reports(b'{"reports":[' + b"1," * 1334 + b"1]}")


def test_encodings_are_named_in_any_case(habits):
    body = gzipped(b'{"reports": []}')
    assert post(habits, body, encoding="GZIP").status_code == 200


@pytest.mark.parametrize(("encoding", "compress"), COMPRESSIONS)
def test_the_inflated_limit_is_exact(encoding, compress):
    assert inflate(compress(b"x" * 1000), encoding, 1000) == b"x" * 1000
    with raises(ProblemError, "body-too-large"):
        inflate(compress(b"x" * 1001), encoding, 1000)


@pytest.mark.parametrize(("encoding", "compress"), COMPRESSIONS)
def test_a_broken_encoding_is_400(habits, encoding, compress):
    whole = compress(b'{"reports": []}')
    for body in (b"", b"nonsense", whole[:-1], whole[:5], whole + b"x", whole + whole):
        assert kind_of(post(habits, body, encoding=encoding)) == (400, "malformed-encoding")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans(), st.integers(0, 300))
def test_inflate_returns_bytes_or_a_problem_for_any_input(noise, genuine, place):
    body = bytearray(gzipped(noise) if genuine else noise)
    body[place : place + 1] = noise[:1]
    try:
        inflated = inflate(bytes(body), "gzip", LIMIT)
    except ProblemError:
        return
    assert len(inflated) <= LIMIT


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2000), st.binary(max_size=3), st.integers(0, 3))
def test_damaged_batch_never_causes_a_server_error(habits, batch, place, noise, removed):
    place %= len(batch)
    damaged = batch[:place] + noise + batch[place + removed :]
    assert post(habits, damaged).status_code in (200, 400, 422)
