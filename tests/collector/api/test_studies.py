"""Publish, fetch and close studies, signed or not."""

import json

import pytest

from ldp_client import mechanism_for
from ldp_client.device.arguments import load_public_key
from ldp_client.device.policy import verify_study
from ldp_client.documents.signed import MOST_SIGNATURES, Signature
from schemas import Report, Study
from schemas.signing import new_key, sign_study
from schemas.study import SignedStudy
from schemas.warnings import study_in_words
from tests import studies
from tests.kit.answers import problem, refusal
from tests.kit.collectors import build_report, build_study

JSON = "application/json"


def test_a_version_is_published_once_and_never_changes(empty, study):
    first = empty.publish(study)
    assert first.status_code == 201
    assert first.get_json() == {"id": "habits", "version": 1, "digest": study.digest}
    assert first.headers["Location"] == "/v1/studies/habits"
    spelled = json.dumps(study.document, indent=3)
    again = empty.client.post("/v1/studies", data=spelled, content_type=JSON, headers=empty.operator)
    assert again.status_code == 200
    assert refusal(empty.publish(build_study(title="Other"))) == ("study-conflict", "version")
    assert empty.client.get("/v1/studies/habits").data == study.canonical()


def test_replaced_versions_are_fetched_and_not_published(habits, study):
    """And the later version is served at once, also to those who read the earlier one."""
    path, later = "/v1/studies/habits", build_study(version=3, title="Later habits")
    assert [habits.client.get(each).status_code for each in (path, "/s/habits")] == [200, 200]
    assert habits.publish(later).status_code == 201
    assert refusal(habits.publish(study)) == ("study-outdated", "version")
    assert "Later habits" in habits.client.get("/s/habits").text
    assert habits.client.get(path).data == habits.client.get(f"{path}?version=3").data == later.canonical()
    assert habits.client.get(f"{path}?version=1").data == study.canonical()
    assert habits.client.get(f"{path}?version=2").status_code == 404


def test_a_study_has_a_bounded_number_of_versions(habits, monkeypatch):
    monkeypatch.setattr("collector.studies.MOST_VERSIONS", 2)
    assert habits.publish(build_study(2)).status_code == 201
    assert problem(habits.publish(build_study(3))) == (409, "study-conflict")
    assert habits.publish(build_study(2)).status_code == 200


@pytest.mark.parametrize(
    ("path", "query"),
    [
        *[("", {"version": text}) for text in ("0", "x", "1.0", "٣", "9" * 30)],
        ("/export", {"format": "xlsx"}),
        ("/export", {"after": "xyz"}),
        ("/export", {"deletions": "²"}),
    ],
)
def test_a_wrong_parameter_is_named(habits, path, query):
    response = habits.client.get(f"/v1/studies/habits{path}", query_string=query, headers=habits.operator)
    assert (response.status_code, refusal(response)) == (422, ("parameter-invalid", next(iter(query))))


@pytest.mark.parametrize("path", ["/v1/studies", "/v1/check"])
def test_an_invalid_study_names_its_field(empty, study, path):
    document = json.loads(study.to_json())
    document["questions"][2]["mechanism"]["epsilon"] = "0"
    refused = empty.publish(document, path)
    assert refusal(refused) == ("study-invalid", "questions[2].mechanism.epsilon")


def test_check_describes_a_draft_and_stores_nothing(empty, study):
    checked = empty.publish(study, "/v1/check")
    lines, warnings = study_in_words(study)
    in_words = {"lines": lines, "warnings": warnings}
    assert checked.get_json() == {"id": "habits", "digest": study.digest, **in_words}
    assert empty.client.get("/v1/studies/habits").status_code == 404
    assert empty.client.get("/v1/audit-log", headers=empty.operator).get_json() == {"entries": []}


@pytest.mark.attack(7)
@pytest.mark.parametrize("sample_one_question", [False, True])
def test_a_study_whose_reports_would_be_refused_is_refused(make_harness, sample_one_question):
    """Devices permanently drop a report that is too large, and have spent epsilon for nothing."""
    oue = {"mechanism": {"name": "oue", "epsilon": "1"}, "model": {"name": "multinomial"}}
    questions = [{"id": f"q{n}", "ask": "choice", "choices": {"count": 9000 * n}, **oue} for n in (1, 2)]
    study = build_study(questions=questions, **({"sample_one_question": True} if sample_one_question else {}))
    payloads = {question.id: bytes(mechanism_for(question).payload_size) for question in study.questions}
    if sample_one_question:
        del payloads["q1"]
    report = Report("0" * 32, study.id, study.version, study.digest, payloads)
    size = len(report.to_json())
    exact, short = (make_harness(f"{limit}.sqlite3", body_limit=limit) for limit in (size, size - 1))
    assert exact.publish(study).status_code == 201
    path = f"/v1/studies/habits/reports/{report.id}"
    assert exact.client.put(path, data=report.to_json(), content_type=JSON).status_code == 201
    # No limit of a collector admits more than a device sends.
    choice = studies.choice_of("oue", 65_536, "0.05")
    large = studies.document(*({**choice, "id": f"q{place}"} for place in range(97)))
    for harness, refused in ((short, study), (make_harness("large.sqlite3", body_limit=8 << 20), large)):
        for path in ("/v1/studies", "/v1/check"):
            assert refusal(harness.publish(refused, path)) == ("study-invalid", "questions")


def test_an_unknown_study_is_404_everywhere(empty, study):
    report = build_report(study)
    responses = [empty.client.get("/v1/studies/habits"), empty.close(), empty.put(report), empty.export()]
    responses += [empty.post([report.to_document()]), empty.post([])]
    responses += [empty.withdraw(report.id), empty.summary()]
    for response in responses:
        assert (response.status_code, refusal(response)) == (404, ("study-unknown", None))


def post(harness, signed):
    return harness.client.post("/v1/studies", json=json.loads(signed.to_json()), headers=harness.operator)


def test_published_signatures_are_served_and_never_replaced(empty, study):
    pairs = [new_key() for _ in range(3)]
    signed = [sign_study(study, private.encode()) for private, _ in pairs]
    keys = sorted(signature.key for one in signed for signature in one.signatures)

    def fetched():
        return SignedStudy.from_json(empty.client.get("/v1/studies/habits/signed").data)

    assert [post(empty, one).status_code for one in (*signed, signed[-1])] == [201, 200, 200, 200]
    assert [signature.key for signature in fetched().signatures] == keys
    assert empty.client.get("/v1/studies/habits").data == study.canonical()
    junk = [Signature(f"{number:064x}", b"x") for number in range(MOST_SIGNATURES)]
    for wrong in (junk, [Signature(keys[0], b"x")]):
        post(empty, SignedStudy(study, wrong))
    assert len(fetched().signatures) == MOST_SIGNATURES
    verify_study(fetched(), [load_public_key(public) for _, public in pairs[:2]])


@pytest.mark.attack(15)
def test_each_version_keeps_its_signatures(empty, monkeypatch):
    """Ask for the longest published document again and again: it is served without being parsed."""
    path, private = "/v1/studies/habits/signed", new_key()[0].encode()
    old, new = (sign_study(build_study(version), private) for version in (1, 2))
    assert refusal(empty.client.get(path))[0] == "study-unknown"
    assert [post(empty, one).status_code for one in (old, new)] == [201, 201]
    assert refusal(post(empty, old)) == ("study-outdated", "version")
    with monkeypatch.context() as patch:
        patch.setattr(Study, "from_json", lambda *_: pytest.fail("a published document is parsed again"))
        for version, one in ((1, old), (2, new)):
            assert empty.client.get(path, query_string={"version": version}).text == one.to_json()
    empty.publish(build_study(3))
    assert refusal(empty.client.get(path))[0] == "study-unsigned"


@pytest.mark.attack(16)
@pytest.mark.parametrize("blank", ["", " "], ids=["fast", "plain"])
def test_refusal_names_digest_of_the_published_study(habits, study, blank):
    """Another study of this id refuses a report: the refusal names its digest, and the device keeps it."""

    def put(report):
        path = f"/v1/studies/habits/reports/{report.id}"
        answer = habits.client.put(path, data=report.to_json() + blank, content_type=JSON)
        return problem(answer)[1], answer.get_json(force=True).get("digest")

    gone = build_report(study)
    habits.withdraw(gone.id, secret=gone.secret)
    assert put(gone) == ("report-withdrawn", study.digest)
    habits.close()
    assert put(build_report(study)) == ("study-closed", study.digest)
    assert put(build_report(build_study(title="Others"))) == ("report-invalid", study.digest)
    assert put(build_report(build_study(version=2)))[1] is None
