"""Uploads: what is stored and answered, whichever way a request comes in."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from collector.api import reports as api
from collector.problems import ProblemError
from collector.reports import uploads
from tests.kit.collectors import build_study, wait_for
from tests.kit.errors import raises

PATH = "/v1/studies/habits/reports"
JSON = "application/json"


@pytest.fixture
def views(monkeypatch):
    """The number of uploads that reach Flask's view."""
    seen = []
    genuine = api._accept
    monkeypatch.setattr(api, "_accept", lambda *arguments: seen.append(1) or genuine(*arguments))
    return seen


def put_as(harness, report, *, chunked=False, **options):
    if chunked:
        options |= {"headers": {"Transfer-Encoding": "chunked"}}
        options["environ_overrides"] = {"wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
    body = io.BytesIO(report.to_json().encode())
    options.setdefault("content_type", JSON)
    return harness.client.put(f"{PATH}/{report.id}", input_stream=body, **options)


def test_the_shortcut_and_the_view_give_the_same_answers(habits, study, make_report, views):
    answers = []
    for chunked in (False, True):
        first = make_report(study)
        changed = make_report(study, id=first.id, payloads={**first.payloads, "hours": b"\1\2\3\4"})
        sent = [first, first, changed, make_report(study, digest="0" * 64)]
        received = [put_as(habits, report, chunked=chunked) for report in sent]
        texts = [answer.text.replace(report.id, "") for answer, report in zip(received, sent)]
        answers.append([(one.status_code, one.content_type, text) for one, text in zip(received, texts)])
        assert len(views) == (4 if chunked else 0)
    assert answers[0] == answers[1]
    assert [status for status, _, _ in answers[0]] == [201, 200, 409, 422]


def test_batch_names_its_failures(habits, study, make_report):
    reports = [make_report(study) for _ in range(20)]
    assert habits.post([one.to_document() for one in reports]).json == {
        "stored": 20,
        "duplicates": 0,
        "failed": [],
    }
    changed = make_report(study, id=reports[0].id, payloads={**reports[0].payloads, "hours": b"\1\2\3\4"})
    texts = [one.to_json() for one in (*reports, changed, make_report(study))]
    for comma in (",", " , "):
        body = f'{{"reports":[{comma.join(texts)}]}}'
        answer = habits.client.post(PATH, data=body, content_type=JSON).json
        assert answer["stored"] + answer["duplicates"] == 21
        assert [(one["id"], one["field"]) for one in answer["failed"]] == [(changed.id, "reports[20].id")]


def test_versions_may_be_mixed_in_a_batch(habits, study, make_report):
    later = build_study(2, questions=study.document["questions"][:1])
    habits.publish(later)
    for _ in range(2):
        mixed = [make_report(later), make_report(study), make_report(later)]
        body = f'{{"reports":[{",".join([report.to_json() for report in mixed])}]}}'
        assert habits.client.post(PATH, data=body, content_type=JSON).json["stored"] == 3


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"content_type": "application/json; charset=utf-8"}, 201),
        ({"content_type": "APPLICATION/JSON;charset=UTF-8"}, 201),
        ({"content_type": ""}, 201),
        ({"content_type": "text/plain"}, 415),
        ({"headers": {"Content-Encoding": "gzip"}}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "10"}}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "x"}}, 400),
        ({"environ_overrides": {"CONTENT_LENGTH": "99999999999"}}, 413),
        ({"environ_overrides": {"CONTENT_LENGTH": "9" * 5000}}, 400),
    ],
)
def test_unusual_requests(habits, study, make_report, options, status):
    report = make_report(study)
    options = {"content_type": JSON, **options}
    assert habits.client.put(f"{PATH}/{report.id}", data=report.to_json(), **options).status_code == status


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

    def slow(study_id):
        reading.append(1)
        most.append(len(reading))
        assert ended.wait(30)
        reading.pop()
        return genuine(study_id)

    object.__setattr__(habits.collector.current, "find", slow)
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(habits.app.test_client().get, "/v1/studies/habits") for _ in range(4)]
        try:
            wait_for(lambda: reading)
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
