"""Bodies in JSON and CBOR, as they are and compressed; every decoder against hostile input."""

from __future__ import annotations

import gzip
import json

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from collector.problems import ProblemError
from collector.views.cbor import parse_cbor
from collector.views.inflating import inflate
from ldp_client.documents.errors import DocumentError
from tests.collector.cbor_writing import binary_document, dump_cbor

LIMIT = 100_000
MANY_VALUES = 1_000_000
LEAVES = st.integers(0, 2**64 - 1) | st.binary(max_size=40) | st.text(max_size=20)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


class Fuzzed(dict):
    """The same batch {in CBOR or not: (body, media type)}, and where it may be sent."""

    def __init__(self, harness, reports):
        plain = {"reports": [report.to_document() for report in reports]}
        binary = {"reports": [binary_document(report) for report in reports]}
        super().__init__({False: (json.dumps(plain).encode(), "application/json")})
        self[True] = (dump_cbor(binary), "application/cbor")
        self.harness = harness


@pytest.fixture
def fuzzed(habits, study, make_report):
    return Fuzzed(habits, [make_report(study) for _ in range(4)])


def kind_of(response):
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


def post(harness, body, form="application/json", encoding=None):
    headers = {"Content-Encoding": encoding} if encoding else {}
    return harness.client.post("/v1/studies/habits/reports", data=body, content_type=form, headers=headers)


def gzipped(body):
    return gzip.compress(body)


def zstandardised(body):
    return zstandard.ZstdCompressor().compress(body)


def zstandardised_as_a_stream(body):
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return stream.compress(body) + stream.flush()


COMPRESSIONS = [("gzip", gzipped), ("zstd", zstandardised), ("zstd", zstandardised_as_a_stream)]


def test_cbor_carries_the_same_reports(habits, study, make_report):
    reports = sorted((make_report(study) for _ in range(30)), key=lambda report: report.id)
    one, *rest = reports
    path = f"/v1/studies/habits/reports/{one.id}"
    body = dump_cbor(binary_document(one))
    assert habits.client.put(path, data=body, content_type="application/cbor").status_code == 201
    batch = dump_cbor({"reports": [binary_document(report) for report in rest]})
    assert post(habits, batch, "application/cbor").get_json() == {"stored": 29, "duplicates": 0, "failed": []}
    assert habits.exported() == reports
    assert [habits.put(report).status_code for report in reports] == [200] * 30


def test_cbor_may_hold_the_text_forms_too(habits, study, make_report):
    report = make_report(study)
    batch = dump_cbor({"reports": [report.to_document()]})
    assert post(habits, batch, "application/cbor").get_json()["stored"] == 1
    assert habits.exported() == [report]


def test_a_bad_report_in_cbor_is_named(habits, study, make_report):
    good = make_report(study)
    impossible = binary_document(make_report(study, payloads={**good.payloads, "ever": b"\7"}))
    short = {**binary_document(good), "id": b"abc"}
    batch = dump_cbor({"reports": [impossible, binary_document(good), 7, short]})
    result = post(habits, batch, "application/cbor").get_json()
    assert result["stored"] == 1
    assert [entry["field"] for entry in result["failed"]] == [
        "reports[0].payloads.ever", "reports[2]", "reports[3].id"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"\xf6",
        b"\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x20",
        b"\xd8\x1c\x81\xd8\x1d\x00",
        b"\x9f\xff",
        b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x81" * 100_000,
        b"\xa2\x61a\x01\x61a\x02",
        b"\xa1\x01\x02",
        b"\x61\xff",
        b"\x01\x01",
        b"\x19\x01",
    ],
)
def test_what_is_not_our_cbor_is_400(habits, body):
    assert kind_of(post(habits, body, "application/cbor")) == (400, "malformed-cbor")


def test_a_study_is_published_in_json_only(empty):
    response = empty.client.post(
        "/v1/studies", data=b"\xa0", content_type="application/cbor", headers=empty.operator
    )
    assert kind_of(response) == (415, "media-type-unsupported")


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
def test_a_bomb_is_413_and_never_inflated(make_harness, encoding, compress):
    harness = make_harness(body_limit=LIMIT)
    bomb = compress(b" " * 50_000_000)
    assert len(bomb) < LIMIT
    assert kind_of(post(harness, bomb, encoding=encoding)) == (413, "body-too-large")


MANY = 2_200_000


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (b'{"reports":[' + b"[]," * MANY + b"{}]}", "application/json"),
        (b'{"reports":[' + b"1," * MANY + b"{}]}", "application/json"),
        (b"\xa1\x67reports\x9a" + MANY.to_bytes(4, "big") + b"\xa0" * MANY, "application/cbor"),
        (b'{"reports":[' + b"{}," * 100_000 + b"{}]}", "application/json"),
    ],
)
def test_a_body_of_very_many_small_values_is_413(habits, body, form):
    """A few kilobytes of gzip would become gigabytes of objects."""
    assert len(gzipped(body)) < 20_000
    assert kind_of(post(habits, gzipped(body), form, "gzip")) == (413, "body-too-large")


def test_the_limit_of_values_is_exact():
    body = b"\x82\x01\xa1\x61a\x02"
    assert parse_cbor(body, 4) == [1, {"a": 2}]
    with pytest.raises(DocumentError, match="more than 3 values"):
        parse_cbor(body, 3)


def test_encodings_are_named_in_any_case(habits):
    body = gzipped(b'{"reports": []}')
    assert post(habits, body, encoding="GZIP").status_code == 200


@pytest.mark.parametrize(("encoding", "compress"), COMPRESSIONS)
def test_the_inflated_limit_is_exact(encoding, compress):
    assert inflate(compress(b"x" * 1000), encoding, 1000) == b"x" * 1000
    with pytest.raises(ProblemError, match="body-too-large"):
        inflate(compress(b"x" * 1001), encoding, 1000)


@pytest.mark.parametrize(("encoding", "compress"), COMPRESSIONS)
def test_a_broken_encoding_is_400(habits, encoding, compress):
    whole = compress(b'{"reports": []}')
    for body in (b"", b"nonsense", whole[:-1], whole[:5], whole + b"x", whole + whole):
        assert kind_of(post(habits, body, encoding=encoding)) == (400, "malformed-encoding")


def test_a_window_beyond_the_limit_is_400(habits):
    parameters = zstandard.ZstdCompressionParameters(window_log=27, compression_level=1)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = stream.compress(b"x" * 1000) + stream.flush()
    assert kind_of(post(habits, body, encoding="zstd")) == (400, "malformed-encoding")


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_cbor_round_trips(value):
    assert parse_cbor(dump_cbor(value), MANY_VALUES) == value


@settings(max_examples=600, deadline=None)
@given(st.binary(max_size=200) | VALUES.map(dump_cbor).map(lambda body: body[:-1]))
@example(b"\xbf")
def test_the_cbor_decoder_answers_anything_with_a_value_or_a_problem(body):
    try:
        value = parse_cbor(body, MANY_VALUES)
    except DocumentError:
        return
    assert len(dump_cbor(value)) <= len(body)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["gzip", "zstd"]), st.booleans(), st.integers(0, 300))
def test_inflating_answers_anything_with_bytes_or_a_problem(noise, encoding, genuine, place):
    compress = {"gzip": gzipped, "zstd": zstandardised}[encoding]
    body = bytearray(compress(noise) if genuine else noise)
    body[place : place + 1] = noise[:1]
    try:
        inflated = inflate(bytes(body), encoding, LIMIT)
    except ProblemError:
        return
    assert len(inflated) <= LIMIT


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.booleans(), st.integers(0, 2000), st.binary(max_size=3), st.integers(0, 3))
def test_a_damaged_batch_is_never_the_servers_fault(fuzzed, in_cbor, place, noise, removed):
    body, form = fuzzed[in_cbor]
    place %= len(body)
    damaged = body[:place] + noise + body[place + removed :]
    response = post(fuzzed.harness, damaged, form)
    assert response.status_code in (200, 400, 422)
