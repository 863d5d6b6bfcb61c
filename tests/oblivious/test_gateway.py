"""A collector handles requests from its gateway; the outer answer reveals nothing."""

import json

import pytest

from collector.oblivious.keys import MOST_KEYS, GatewayKeys
from collector.problems import OHTTP_KEY
from collector.settings import Settings
from collector.storage import queries
from ldp_client.documents.errors import InputError
from ldp_client.files.signing import new_key, sign_study
from ldp_client.oblivious.binary_http import (
    ANSWER_BYTES,
    DOCUMENT_BYTES,
    REQUEST_SIZES,
    BinaryError,
    Request,
    padded,
    request_bytes,
)
from ldp_client.oblivious.encapsulation import (
    ANSWER_OVERHEAD_BYTES,
    MOST_MESSAGE_BYTES,
    EncapsulationError,
    encapsulate,
)
from tests import studies
from tests.kit.errors import raises
from tests.oblivious.conftest import JSON, SIZE

SERVED = "/v1/studies/habits?version=1"


def result(answer):
    return answer.status, json.loads(answer.content)["result"]


def problem(answer):
    return answer.status, json.loads(answer.content)["type"].rsplit(":", 1)[1]


def stored(gateway):
    return len(gateway.harness.exported())


def test_repeated_requests_store_once_and_withdraw_permanently(gateway, make_report, study):
    """A relay may repeat any request that it has seen, so each request may arrive twice."""
    report = make_report(study)
    request = f"/v1/studies/habits/reports/{report.id}"
    assert result(gateway.put(report)) == (201, "stored")
    assert result(gateway.put(report)) == (200, "duplicate")
    assert stored(gateway) == 1
    assert result(gateway.delete(report)) == (200, "withdrawn")
    assert result(gateway.delete(report)) == (200, "withdrawn")
    assert problem(gateway.put(report)) == (410, "report-withdrawn")
    assert problem(gateway.ask("DELETE", request, ("ldpkit-withdrawal", "0" * 32))) == (
        403,
        "withdrawal-refused",
    )
    assert stored(gateway) == 0


def test_exact_replay_changes_nothing_and_reveals_nothing(gateway, make_report, study):
    report = make_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    request = Request("PUT", "", path, [JSON], report.to_json().encode())
    asked = gateway.encapsulated(request.encode(SIZE))
    assert gateway.say(asked).status == 201
    again = gateway.post(asked.message)
    assert (again.status_code, stored(gateway)) == (200, 1)
    # A second answer has another nonce, and opens with the first request alone.
    assert b'"duplicate"' in asked.open(again.data)
    with pytest.raises(EncapsulationError):
        gateway.encapsulated(b"x").open(again.data)


def test_sizes_depend_on_the_method_alone(gateway, make_report, study, monkeypatch):
    report, other = make_report(study), make_report(study)
    statuses = [gateway.put(report).status, gateway.put(report).status, gateway.delete(report).status]
    statuses += [gateway.put(report).status, gateway.delete(other, secret=bytes(16)).status]
    statuses += [gateway.put(make_report(study, digest="0" * 64)).status]
    statuses += [gateway.put(make_report(study, version=7)).status]
    nowhere = f"/v1/studies/unheard-of/reports/{other.id}"
    statuses += [gateway.ask("PUT", nowhere, JSON, content=other.to_json().encode()).status]
    gateway.harness.close()
    statuses.append(gateway.put(other).status)

    def away(*_):
        raise queries.OtherReleaseError("in a test")

    monkeypatch.setattr(gateway.harness.collector.writer, "upload", away)
    gateway.harness.client.post("/v1/studies/habits/open", headers=gateway.harness.operator)
    statuses.append(gateway.put(other).status)
    assert statuses == [201, 200, 200, 410, 403, 422, 404, 422, 410, 503]
    assert gateway.sizes == {(SIZE + 55, ANSWER_BYTES + ANSWER_OVERHEAD_BYTES)}
    gateway.sizes.clear()
    known = ("if-none-match", f'"{study.digest}"')
    statuses = [gateway.ask("GET", path).status for path in (SERVED, SERVED + "9", "/metrics")]
    statuses += [gateway.ask("GET", SERVED, known).status]
    assert statuses == [200, 404, 404, 304]
    assert gateway.sizes == {(SIZE + 55, DOCUMENT_BYTES + ANSWER_OVERHEAD_BYTES)}


@pytest.mark.parametrize("path", ["/v1/studies/habits", SERVED])
def test_study_is_fetched_through_the_gateway(gateway, study, path):
    answer = gateway.ask("GET", path)
    fields = dict(answer.fields)
    assert (answer.status, answer.content) == (200, study.canonical())
    assert (fields["ldpkit-study"], fields["etag"]) == ("open", f'"{study.digest}"')


def test_signed_study_is_fetched_through_the_gateway(gateway, make_study):
    signed = sign_study(make_study(2), new_key()[0].encode())
    harness = gateway.harness
    body = json.loads(signed.to_json())
    assert harness.client.post("/v1/studies", json=body, headers=harness.operator).status_code == 201
    for path in ("/v1/studies/habits/signed", "/v1/studies/habits/signed?version=2"):
        assert gateway.ask("GET", path).content.decode() == signed.to_json()
    assert problem(gateway.ask("GET", "/v1/studies/habits/signed?version=1")) == (404, "study-unsigned")


def test_gzip_is_never_used_for_an_inner_document(gateway, study):
    answer = gateway.ask("GET", SERVED, ("accept-encoding", "gzip"))
    assert (answer.content, "content-encoding" in dict(answer.fields)) == (study.canonical(), False)


def test_document_above_the_fixed_size_is_refused_inside(gateway, make_study):
    def study_with(version, count):
        questions = [{**studies.YES_NO, "id": f"q{place}", "text": "x" * 900} for place in range(count)]
        return make_study(version, questions=questions)

    bytes_each = len(study_with(2, 41).canonical()) - len(study_with(2, 40).canonical())
    longest = study_with(2, (DOCUMENT_BYTES - 1000) // bytes_each)
    too_long = study_with(3, DOCUMENT_BYTES // bytes_each + 1)
    for study in (longest, too_long):
        assert gateway.harness.publish(study).status_code == 201
    assert gateway.ask("GET", "/v1/studies/habits?version=2").content == longest.canonical()
    assert problem(gateway.ask("GET", "/v1/studies/habits")) == (406, "answer-too-large")
    assert {came for _, came in gateway.sizes} == {DOCUMENT_BYTES + ANSWER_OVERHEAD_BYTES}


def test_inner_answer_carries_collector_identity_and_date(gateway, make_report, study):
    fields = dict(gateway.put(make_report(study)).fields)
    assert fields["ldpkit-collector"] == gateway.harness.collector.identity.hex()
    assert fields["content-type"] == "application/json"
    assert fields["date"].endswith("GMT")


def test_outer_answer_reveals_only_its_media_type(gateway):
    asked = gateway.encapsulated(b"")
    answer = gateway.post(asked.message)
    assert answer.content_type == "message/ohttp-res"
    assert answer.headers["Cache-Control"] == "no-store"


def test_older_keys_stay_valid_until_they_are_retired(make_gateway, keys, tmp_path):
    gateway = make_gateway()
    newest, older = keys.keys
    assert gateway.harness.client.get("/.well-known/ohttp-gateway").data == b"".join(
        len(key.configuration).to_bytes(2, "big") + key.configuration for key in (newest, older)
    )
    message = gateway.encapsulated(b"x", key=1).message
    assert gateway.post(message).status_code == 200
    keys.without(older.number).replace(str(tmp_path / "ohttp.keys"))
    assert (tmp_path / "ohttp.keys").stat().st_mode & 0o777 == 0o600
    answer = make_gateway(database=f"sqlite:///{tmp_path / 'second.sqlite3'}").post(message)
    assert (answer.status_code, answer.mimetype) == (400, "application/problem+json")
    assert answer.json["type"] == OHTTP_KEY.uri


def test_key_numbers_are_distinct_and_limited():
    keys = GatewayKeys.generate()
    for _ in range(MOST_KEYS - 1):
        keys = keys.rotated()
    assert len({key.number for key in keys.keys}) == MOST_KEYS
    with raises(InputError, "oblivious.too_many_keys"):
        keys.rotated()
    with raises(InputError, "oblivious.unknown_key"):
        keys.without(keys.keys[0].number)
    # A number comes round, and never to one that is valid.
    last = GatewayKeys(
        (type(keys.keys[0])(255, keys.keys[0].private), type(keys.keys[0])(0, keys.keys[0].private))
    )
    assert last.rotated().keys[0].number == 1


def test_new_first_key_has_a_random_number():
    """So a device with the lost key is told that the key is gone, not that its request was changed."""
    assert len({GatewayKeys.generate().keys[0].number for _ in range(20)}) > 1


def test_unopened_requests_are_counted(gateway, keys):
    assert gateway.post(bytes(MOST_MESSAGE_BYTES + 1)).status_code == 413
    public = keys.keys[0].private.public_key().public_bytes_raw()
    strange = encapsulate((keys.keys[0].number + 7) % 256, public, b"")
    assert gateway.post(strange.message).json["type"] == OHTTP_KEY.uri
    assert gateway.harness.collector.metrics.totals().rejected == {"body-too-large": 1, "ohttp-key": 1}


@pytest.mark.parametrize("text", ["", "{}", '{"format": "ldpkit.ohttp-keys/1", "keys": []}', "[1]"])
def test_invalid_key_file_is_rejected_without_its_content(tmp_path, text):
    (tmp_path / "keys").write_text(text)
    with raises(InputError, "oblivious.wrong_key_file"):
        GatewayKeys.load(tmp_path / "keys")


def test_collector_without_keys_has_no_gateway_routes(make_harness):
    harness = make_harness()
    for answer in (harness.client.post("/ohttp"), harness.client.get("/.well-known/ohttp-gateway")):
        assert (answer.status_code, answer.json["type"]) == (404, "urn:ldpkit:problem:oblivious-absent")


def test_require_ohttp_collector_rejects_direct_reports(make_gateway, make_report, study):
    gateway = make_gateway(require_ohttp=True)
    report = make_report(study)
    harness = gateway.harness
    refused = [harness.put(report), harness.post([report.to_document()])]
    for answer in refused:
        assert (answer.status_code, answer.json["type"]) == (403, "urn:ldpkit:problem:oblivious-needed")
    assert result(gateway.put(report)) == (201, "stored")
    again = make_report(study)
    assert result(gateway.put(again)) == (201, "stored")
    # Nobody answers in vain: neither study nor page is served directly. Tools still read published versions.
    for path in ("/v1/studies/habits", "/v1/studies/habits/signed", "/s/habits"):
        assert harness.client.get(path).status_code == 403
    assert harness.client.get("/v1/studies/habits?version=1").status_code == 200
    assert gateway.ask("GET", "/v1/studies/habits").status == 200
    assert harness.withdraw(again.id, secret=again.secret).json["result"] == "withdrawn"
    assert harness.withdraw(report.id).json["result"] == "withdrawn"
    assert stored(gateway) == 0


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"require_ohttp": True}, "settings.require_ohttp_needs_keys"),
        ({"require_ohttp": "perhaps"}, "settings.not_true_or_false"),
    ],
)
def test_inconsistent_settings_are_rejected(settings, code):
    with raises(InputError, code, "require_ohttp"):
        Settings.from_mapping(settings)


def test_request_gets_the_smallest_size_that_fits():
    assert [request_bytes(size) for size in (1, 4096, 4097, 65_536, 65_537, 262_144)] == [
        4096,
        4096,
        16_384,
        65_536,
        262_144,
        262_144,
    ]
    with pytest.raises(BinaryError):
        request_bytes(REQUEST_SIZES[-1] + 1)


def test_padded_requests_may_exceed_the_body_limit(make_gateway, make_report, study):
    gateway = make_gateway(body_limit=1 << 12)
    report = make_report(study)
    large = gateway.encapsulated(padded(Request("PUT", "", "/", [], bytes(65_537))))
    assert gateway.say(large).status == 404
    assert result(gateway.put(report)) == (201, "stored")
    assert gateway.post(bytes(MOST_MESSAGE_BYTES + 1)).status_code == 413
