"""Bodies as they are and compressed; every decoder against hostile input."""

import gzip
import io
import json

import pytest

from collector.problems import ProblemError
from collector.reports.uploads import MOST_GROWTH, MOST_WRONG, SMALL_BYTES, inflate
from tests.kit.answers import problem
from tests.kit.collectors import build_report, build_study
from tests.kit.errors import raises

JSON, LIMIT, MANY = "application/json", 100_000, 100_000
PATH = "/v1/studies/habits/reports"


def post(harness, body, form=JSON, encoding=None):
    headers = {"Content-Encoding": encoding} if encoding else {}
    return harness.client.post(PATH, data=body, content_type=form, headers=headers)


def put(harness, body, **options):
    return harness.client.put(f"{PATH}/{'0' * 32}", data=body, content_type=JSON, **options)


@pytest.mark.parametrize("form", ["application/cbor", "text/plain"])
def test_body_that_is_not_json_is_415(habits, study, make_report, form):
    body, refused = make_report(study).to_json().encode(), (415, "media-type-unsupported")
    assert problem(post(habits, b'{"reports":[' + body + b"]}", form)) == refused
    report_id = json.loads(body)["id"]
    assert problem(habits.client.put(f"{PATH}/{report_id}", data=body, content_type=form)) == refused
    published = habits.client.post("/v1/studies", data=b"{}", content_type=form, headers=habits.operator)
    assert problem(published) == problem(post(habits, b"{}", encoding="br")) == refused
    assert habits.exported() == []


def test_compressed_bodies_are_taken(habits, study, make_report):
    reports = [make_report(study) for _ in range(20)]
    body = json.dumps({"reports": [report.to_document() for report in reports[1:]]}).encode()
    assert post(habits, gzip.compress(body), encoding="GZIP").get_json()["stored"] == 19
    response = habits.client.put(
        f"{PATH}/{reports[0].id}",
        data=gzip.compress(reports[0].to_json().encode()),
        content_type=JSON,
        headers={"Content-Encoding": "gzip"},
    )
    assert response.status_code == 201


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (b"", (400, "malformed-json")),
        (b"\xff", (400, "malformed-json")),
        (b'{"id": 1, "id": 2}', (400, "malformed-json")),
        (b"[" * 1000, (400, "malformed-json")),
        (b"1" * 10_000, (400, "malformed-json")),
        (b"null", (422, "report-invalid")),
        (b"NaN", (422, "report-invalid")),
        (b'{"id": "\\ud800", "\\ud800": 1}', (422, "report-invalid")),
    ],
    ids=["empty", "not UTF-8", "duplicate key", "deep", "huge number", "null", "no number", "surrogate"],
)
def test_body_that_is_no_report_is_refused(habits, body, refused):
    assert problem(put(habits, body)) == refused


def test_long_bodies_are_413(make_harness, empty):
    harness, refused = make_harness("small.sqlite3", body_limit=100), (413, "body-too-large")
    assert problem(put(harness, b"x" * 101)) == refused
    chunked = put(
        harness,
        None,
        input_stream=io.BytesIO(b" " * 1000),
        headers={"Transfer-Encoding": "chunked"},
        environ_overrides={"wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
    )
    assert problem(chunked) == problem(post(harness, gzip.compress(b" " * 5000), encoding="gzip")) == refused
    study = b'"' + b"x" * (1 << 20) + b'"'
    published = empty.client.post("/v1/studies", data=study, content_type=JSON, headers=empty.operator)
    assert problem(published) == refused


def test_unknown_routes_and_methods(empty):
    assert problem(empty.client.get("/nothing")) == (404, "not-found")
    response = empty.client.delete("/v1/studies")
    assert problem(response) == (405, "method-not-allowed")
    assert "POST" in response.headers["Allow"]


@pytest.mark.attack(15)
def test_inflated_size_is_limited():
    """Send a small body that grows a thousandfold: only so much is inflated, and of archives one alone."""
    assert inflate(gzip.compress(b"x" * 1000), "gzip", 1000) == b"x" * 1000
    large = gzip.compress(b" " * (SMALL_BYTES + 1))
    assert len(inflate(gzip.compress(b" " * SMALL_BYTES), "gzip", 1 << 20)) == SMALL_BYTES
    for body, limit in ((gzip.compress(b"x" * 1001), 1000), (large, 1 << 20)):
        with raises(ProblemError, "body-too-large"):
            inflate(body, "gzip", limit)
    assert inflate(gzip.compress(large), "gzip", 1 << 20) == large
    reports = [build_report(build_study()).to_document() for _ in range(200)]
    genuine = json.dumps({"reports": reports}).encode()
    assert len(genuine) < MOST_GROWTH / 4 * len(gzip.compress(genuine, 9))


def test_a_broken_encoding_is_400(habits):
    whole = gzip.compress(b'{"reports": []}')
    for body in (b"", b"nonsense", whole[:-1], whole[:5], whole + b"x", whole + whole):
        assert problem(post(habits, body, encoding="gzip")) == (400, "malformed-encoding")


@pytest.mark.attack(15)
def test_batch_is_rejected_after_a_hundred_invalid_reports(habits):
    """Send a batch of thousands of wrong reports: after a hundred the whole batch is refused."""
    first, second = (build_report(build_study()).to_document() for _ in range(2))
    wrong = {**first, "digest": "0" * 64}
    some = habits.post([wrong] * MOST_WRONG + [first]).get_json()
    assert (some["stored"], len(some["failed"])) == (1, MOST_WRONG)
    response = habits.post([second] + [wrong] * 2 * MOST_WRONG)
    assert problem(response) == (422, "batch-wrong")
    fields = [entry["field"] for entry in response.get_json(force=True)["failed"]]
    assert fields == [f"reports[{number}].digest" for number in range(1, MOST_WRONG + 1)]
    assert [report.id for report in habits.exported()] == [first["id"]]
