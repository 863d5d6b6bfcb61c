"""Uploads: what is stored and answered, whichever way a request comes in; hostile bodies are refused."""

import gzip
import io
from types import SimpleNamespace

import pytest

from collector.api import reports as api
from collector.problems import ProblemError
from collector.reports.uploads import MOST_GROWTH, MOST_WRONG, SMALL_BYTES, inflate
from tests.kit.answers import problem
from tests.kit.collectors import build_report, build_study, conflicting
from tests.kit.errors import raises

PATH = "/v1/studies/habits/reports"
CHUNKED = {
    "headers": {"Transfer-Encoding": "chunked"},
    "environ_overrides": {"wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
}


def send(harness, body, path=PATH, encoding=None, headers=(), **options):
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


def test_the_shortcut_and_the_view_give_the_same_answers(habits, study, monkeypatch):
    views, genuine, answers = [], api._accept, []
    monkeypatch.setattr(api, "_accept", lambda *arguments: views.append(1) or genuine(*arguments))
    for options in ({}, CHUNKED):
        first = build_report(study)
        sent = [first, first, conflicting(first), build_report(study, digest="0" * 64)]
        received = [
            send(habits, report.to_json().encode(), f"{PATH}/{report.id}", **options) for report in sent
        ]
        texts = [answer.text.replace(report.id, "") for answer, report in zip(received, sent)]
        answers.append([(one.status_code, one.content_type, text) for one, text in zip(received, texts)])
        assert len(views) == (4 if options else 0)
    assert answers[0] == answers[1]
    assert [status for status, _, _ in answers[0]] == [201, 200, 409, 422]


@pytest.mark.parametrize("comma", [",", " , "])
def test_batch_names_its_failures(habits, study, comma):
    reports = [build_report(study) for _ in range(20)]
    whole = {"stored": 20, "duplicates": 0, "failed": []}
    assert send(habits, gzip.compress(batch_of(reports, comma)), encoding="GZIP").json == whole
    changed = conflicting(reports[0])
    answer = send(habits, batch_of((*reports, changed, build_report(study)), comma)).json
    assert (answer["stored"], answer["duplicates"]) == (1, 20)
    assert [(one["id"], one["field"]) for one in answer["failed"]] == [(changed.id, "reports[20].id")]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"content_type": "APPLICATION/JSON;charset=UTF-8"}, 201),
        ({"content_type": ""}, 201),
        ({"content_type": "text/plain"}, 415),
        ({"encoding": "br"}, 415),
        ({"encoding": "gzip"}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "10"}}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "x"}}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "99999999999"}}, 413),
        ({"environ_overrides": {"CONTENT_LENGTH": "9" * 5000}}, 400),
    ],
)
def test_unusual_requests(empty, study, options, status):
    """A study is read by the same rules as a report."""
    report = build_report(study)
    for document, path in ((study, "/v1/studies"), (report, f"{PATH}/{report.id}")):
        empty.publish(study)
        answer = send(empty, document.to_json().encode(), path, **options)
        assert answer.status_code == (200 if (path, status) == ("/v1/studies", 201) else status)


EMPTY = gzip.compress(b'{"reports": []}', mtime=0)


@pytest.mark.parametrize(
    ("encoding", "body", "refused"),
    [
        (None, b"", (400, "malformed-json")),
        (None, b"\xff", (400, "malformed-json")),
        (None, b'{"id": 1, "id": 2}', (400, "malformed-json")),
        (None, b"null", (422, "report-invalid")),
        (None, b"NaN", (422, "report-invalid")),
        (None, b'{"id": "\\ud800", "\\ud800": 1}', (422, "report-invalid")),
        ("gzip", b"", (400, "malformed-encoding")),
        ("gzip", b"nonsense", (400, "malformed-encoding")),
        ("gzip", EMPTY[:-1], (400, "malformed-encoding")),
        ("gzip", EMPTY + b"x", (400, "malformed-encoding")),
        ("gzip", EMPTY + EMPTY, (400, "malformed-encoding")),
    ],
    ids=str,
)
def test_body_that_is_no_report_is_refused(habits, encoding, body, refused):
    assert problem(send(habits, body, f"{PATH}/{'0' * 32}", encoding)) == refused


def test_unknown_routes_and_methods(empty):
    assert problem(empty.client.get("/nothing")) == (404, "not-found")
    response = empty.client.delete("/v1/studies")
    assert problem(response) == (405, "method-not-allowed")
    assert "POST" in response.headers["Allow"]


@pytest.mark.attack(15)
def test_inflated_size_is_limited():
    """Send a small body that grows a thousandfold: only so much is inflated, and of archives one alone."""
    large = gzip.compress(b" " * (SMALL_BYTES + 1))
    assert inflate(gzip.compress(b"x" * 1000), "gzip", 1000) == b"x" * 1000
    assert len(inflate(gzip.compress(b" " * SMALL_BYTES), "gzip", 1 << 20)) == SMALL_BYTES
    for body, limit in ((gzip.compress(b"x" * 1001), 1000), (large, 1 << 20)):
        with raises(ProblemError, "body-too-large"):
            inflate(body, "gzip", limit)
    assert inflate(gzip.compress(large), "gzip", 1 << 20) == large
    genuine = batch_of([build_report(build_study()) for _ in range(200)])
    assert len(genuine) < MOST_GROWTH / 4 * len(gzip.compress(genuine, 9))


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
@pytest.mark.parametrize("is_free", [True, False])
def test_readers_of_a_study_take_turns_and_uploads_take_none(habits, study, is_free):
    """Sixteen clients only read a study: one at a time does, but none waits long for one that hangs."""
    seen = []

    def acquire(timeout):
        seen.append(timeout)
        return is_free

    habits.app.wsgi_app._turn = SimpleNamespace(acquire=acquire, release=lambda: seen.append("released"))
    assert habits.client.get("/v1/studies/habits").status_code == 200
    assert seen == ([api.TURN_SECONDS, "released"] if is_free else [api.TURN_SECONDS])
    seen.clear()
    assert habits.put(build_report(study)).status_code == 201
    assert seen == []
