"""Uploads: what is stored and answered, whichever way a request comes in; hostile bodies are refused."""

import gzip
import io
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from collector.api import reports as api
from collector.problems import ProblemError
from collector.reports import uploads
from collector.reports.uploads import MOST_GROWTH, MOST_WRONG, SMALL_BYTES, inflate
from tests.kit.answers import problem
from tests.kit.collectors import build_report, build_study, conflicting
from tests.kit.errors import raises

PATH = "/v1/studies/habits/reports"
ONE = f"{PATH}/{'0' * 32}"
CHUNKED = {
    "headers": {"Transfer-Encoding": "chunked"},
    "environ_overrides": {"wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
}


@pytest.fixture
def views(monkeypatch):
    """The number of uploads that reach Flask's view."""
    seen = []
    genuine = api._accept
    monkeypatch.setattr(api, "_accept", lambda *arguments: seen.append(1) or genuine(*arguments))
    return seen


def send(harness, body, path=ONE, encoding=None, headers=(), **options):
    """Send a body: a report by PUT, a batch or a study by POST."""
    encoded = {"Content-Encoding": encoding} if encoding else {}
    return harness.client.open(
        path,
        method="PUT" if path.startswith(f"{PATH}/") else "POST",
        input_stream=io.BytesIO(body),
        headers={**harness.operator, **encoded, **dict(headers)},
        **{"content_type": "application/json", "content_length": len(body), **options},
    )


def batch_of(reports, comma=","):
    return f'{{"reports":[{comma.join(report.to_json() for report in reports)}]}}'.encode()


def test_the_shortcut_and_the_view_give_the_same_answers(habits, study, make_report, views):
    answers = []
    for options in ({}, CHUNKED):
        first = make_report(study)
        sent = [first, first, conflicting(first), make_report(study, digest="0" * 64)]
        received = [
            send(habits, report.to_json().encode(), f"{PATH}/{report.id}", **options) for report in sent
        ]
        texts = [answer.text.replace(report.id, "") for answer, report in zip(received, sent)]
        answers.append([(one.status_code, one.content_type, text) for one, text in zip(received, texts)])
        assert len(views) == (4 if options else 0)
    assert answers[0] == answers[1]
    assert [status for status, _, _ in answers[0]] == [201, 200, 409, 422]


def test_batch_names_its_failures(habits, study, make_report):
    reports = [make_report(study) for _ in range(20)]
    whole = {"stored": 20, "duplicates": 0, "failed": []}
    assert habits.post([one.to_document() for one in reports]).json == whole
    changed = conflicting(reports[0])
    for comma in (",", " , "):
        answer = send(habits, batch_of((*reports, changed, make_report(study)), comma), PATH).json
        assert answer["stored"] + answer["duplicates"] == 21
        assert [(one["id"], one["field"]) for one in answer["failed"]] == [(changed.id, "reports[20].id")]


def test_versions_may_be_mixed_in_a_batch(habits, study, make_report):
    later = build_study(2, questions=study.document["questions"][:1])
    habits.publish(later)
    for _ in range(2):
        mixed = [make_report(later), make_report(study), make_report(later)]
        assert send(habits, batch_of(mixed), PATH).json["stored"] == 3


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"content_type": "application/json; charset=utf-8"}, 201),
        ({"content_type": "APPLICATION/JSON;charset=UTF-8"}, 201),
        ({"content_type": ""}, 201),
        ({"encoding": "gzip"}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "10"}}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "x"}}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "99999999999"}}, 413),
        ({"environ_overrides": {"CONTENT_LENGTH": "9" * 5000}}, 400),
    ],
)
def test_unusual_requests(habits, study, make_report, options, status):
    report = make_report(study)
    answer = send(habits, report.to_json().encode(), f"{PATH}/{report.id}", **options)
    assert answer.status_code == status


@pytest.mark.parametrize(
    "options", [{"content_type": "application/cbor"}, {"content_type": "text/plain"}, {"encoding": "br"}]
)
def test_body_that_is_not_json_is_415(habits, study, make_report, options):
    report = make_report(study)
    one = report.to_json().encode()
    for path, body in ((f"{PATH}/{report.id}", one), (PATH, batch_of([report])), ("/v1/studies", b"{}")):
        assert problem(send(habits, body, path, **options)) == (415, "media-type-unsupported")
    assert habits.exported() == []


def test_compressed_bodies_are_taken(habits, study, make_report):
    one, *more = (make_report(study) for _ in range(20))
    assert send(habits, gzip.compress(batch_of(more)), PATH, "GZIP").get_json()["stored"] == 19
    packed = gzip.compress(one.to_json().encode())
    assert send(habits, packed, f"{PATH}/{one.id}", "gzip").status_code == 201


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
    assert problem(send(habits, body)) == refused


def test_long_bodies_are_413(make_harness, empty):
    harness = make_harness("small.sqlite3", body_limit=100)
    assert [
        problem(response)
        for response in (
            send(harness, b"x" * 101),
            send(harness, b" " * 1000, **CHUNKED),
            send(harness, gzip.compress(b" " * 5000), PATH, "gzip"),
            send(empty, b'"' + b"x" * (1 << 20) + b'"', "/v1/studies"),
        )
    ] == [(413, "body-too-large")] * 4


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
    genuine = batch_of([build_report(build_study()) for _ in range(200)])
    assert len(genuine) < MOST_GROWTH / 4 * len(gzip.compress(genuine, 9))


def test_a_broken_encoding_is_400(habits):
    whole = gzip.compress(b'{"reports": []}')
    for body in (b"", b"nonsense", whole[:-1], whole[:5], whole + b"x", whole + whole):
        assert problem(send(habits, body, PATH, "gzip")) == (400, "malformed-encoding")


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


@pytest.mark.attack(15)
def test_a_body_has_no_more_values_than_reports_of_its_length(study, make_report):
    """Send a list of thousands of ones: it is refused before it becomes objects."""
    parse = lambda document: uploads._parse_reports(json.dumps(document).encode())  # noqa: E731
    assert parse({"reports": [1] * 1000}) == {"reports": [1] * 1000}
    with raises(ProblemError, "body-too-large", "1601"):
        parse({"reports": [1] * 2000})
    honest = {"reports": [make_report(study).to_document() for _ in range(2000)]}
    assert parse(honest) == honest


@pytest.mark.attack(15)
def test_readers_of_a_study_wait_for_each_other(habits, study, make_report, monkeypatch):
    """Sixteen clients only read a study: one at a time does, and uploads do not wait for them."""
    monkeypatch.setattr(api, "TURN_SECONDS", 30.0)
    genuine, reading, ended, most = habits.collector.current.find, [], Event(), []
    begun = Event()

    def slow(study_id):
        reading.append(1)
        most.append(len(reading))
        begun.set()
        assert ended.wait(30)
        reading.pop()
        return genuine(study_id)

    object.__setattr__(habits.collector.current, "find", slow)
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(habits.app.test_client().get, "/v1/studies/habits") for _ in range(4)]
        try:
            assert begun.wait(30)
            assert habits.put(make_report(study)).status_code == 201
        finally:
            ended.set()
        assert {reader.result(30).status_code for reader in readers} == {200}
    assert max(most) == 1


@pytest.mark.attack(15)
def test_a_reader_that_hangs_stops_no_other(habits, monkeypatch):
    """A read of the database never ends: other readers wait for a moment, and are answered."""
    monkeypatch.setattr(api, "TURN_SECONDS", 0.01)
    shortcut = habits.app.wsgi_app
    with shortcut._turn:
        assert habits.client.get("/v1/studies/habits").status_code == 200
