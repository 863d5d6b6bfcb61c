"""Publish, fetch and close."""

from __future__ import annotations

import json

import pytest

from ldp_client import mechanism_for
from schemas import Report
from tests.collector.answered import refusal


def test_publish_answers_201_then_200(empty, study):
    first = empty.publish(study)
    assert first.status_code == 201
    assert first.get_json() == {"id": "habits", "version": 1, "digest": study.digest}
    assert first.headers["Location"] == "/v1/studies/habits"
    assert empty.publish(study).status_code == 200


def test_publish_accepts_any_spelling_of_the_same_document(habits, study):
    spelled = json.dumps(study.document, indent=3, sort_keys=False).encode()
    response = habits.client.post(
        "/v1/studies", data=spelled, content_type="application/json", headers=habits.operator
    )
    assert response.status_code == 200


def test_a_version_never_changes(habits, make_study):
    response = habits.publish(make_study(title="Other"))
    assert response.status_code == 409
    assert refusal(response) == ("study-conflict", "version")


def test_a_higher_version_replaces_and_a_lower_one_is_refused(habits, study, make_study):
    later = make_study(version=3)
    assert habits.publish(later).status_code == 201
    assert habits.client.get("/v1/studies/habits").data == later.canonical()
    response = habits.publish(study)
    assert response.status_code == 409
    assert refusal(response) == ("study-outdated", "version")


def test_a_refused_publication_leaves_nothing_behind(habits, study, make_study):
    habits.publish(make_study(title="Other"))
    assert habits.client.get("/v1/studies/habits").data == study.canonical()


def test_an_invalid_study_names_its_field(empty, study):
    document = json.loads(study.to_json())
    document["questions"][2]["mechanism"]["epsilon"] = "0"
    response = empty.client.post("/v1/studies", json=document, headers=empty.operator)
    assert response.status_code == 422
    assert refusal(response) == ("study-invalid", "questions[2].mechanism.epsilon")


def test_a_study_whose_noise_cannot_be_made_is_refused(empty, study):
    document = json.loads(study.to_json())
    document["questions"][0]["mechanism"]["epsilon"] = "0.000000000000000001"
    response = empty.client.post("/v1/studies", json=document, headers=empty.operator)
    assert response.status_code == 422
    assert refusal(response)[0] == "study-invalid"


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_a_study_whose_reports_would_be_refused_is_refused(make_harness, make_study, sample_one_question):
    """Devices permanently drop a report that is too large."""
    oue = {"mechanism": {"name": "oue", "epsilon": "1"}, "model": {"name": "multinomial"}}
    questions = [{"id": f"q{n}", "ask": "choice", "choices": {"count": 9000 * n}, **oue} for n in (1, 2)]
    study = make_study(questions=questions, **({"sample_one_question": True} if sample_one_question else {}))
    payloads = {question.id: bytes(mechanism_for(question).payload_size) for question in study.questions}
    if sample_one_question:
        del payloads["q1"]
    report = Report("0" * 32, study.id, study.version, study.digest, payloads)
    size = len(report.to_json())
    exact, short = (make_harness(f"{limit}.sqlite3", body_limit=limit) for limit in (size, size - 1))
    assert refusal(short.publish(study)) == ("study-invalid", "questions")
    assert exact.publish(study).status_code == 201
    path = f"/v1/studies/habits/reports/{report.id}"
    assert exact.client.put(path, data=report.to_json(), content_type="application/json").status_code == 201


def test_publishing_needs_the_token(empty, study):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
        response = empty.client.post("/v1/studies", json=study.document, headers=headers)
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        assert refusal(response) == ("unauthorized", None)


def test_publishing_is_rejected_without_a_configured_token(make_harness, study):
    harness = make_harness("tokenless.sqlite3", token=None)
    assert refusal(harness.publish(study))[0] == "unauthorized"


def test_fetch_gives_the_canonical_bytes_and_revalidates(habits, study):
    response = habits.client.get("/v1/studies/habits")
    assert response.status_code == 200
    assert response.data == study.canonical()
    assert response.content_type == "application/json"
    assert response.headers["ETag"] == f'"{study.digest}"'
    assert "max-age" in response.headers["Cache-Control"]
    again = habits.client.get("/v1/studies/habits", headers={"If-None-Match": response.headers["ETag"]})
    assert again.status_code == 304
    assert again.data == b""


def test_an_unknown_study_is_404_everywhere(empty, study, make_report):
    report = make_report(study)
    responses = [
        empty.client.get("/v1/studies/habits"),
        empty.close(),
        empty.put(report),
        empty.post([report.to_document()]),
        empty.post([]),
        empty.export(),
    ]
    for response in responses:
        assert response.status_code == 404
        assert refusal(response) == ("study-unknown", None)


def test_close_is_final_and_may_be_repeated(habits, study, make_study):
    for _ in range(2):
        response = habits.close()
        assert response.status_code == 200
        assert response.get_json() == {"id": "habits", "version": 1, "closed": True}
    assert habits.publish(study).status_code == 200
    response = habits.publish(make_study(version=2))
    assert response.status_code == 409
    assert refusal(response) == ("study-finished", "version")


def test_closing_needs_the_token(habits):
    assert refusal(habits.client.post("/v1/studies/habits/close"))[0] == "unauthorized"
