"""A collector handles requests from its gateway; the outer answer reveals nothing."""

import json

import pytest

from collector.oblivious.keys import MOST_KEYS, GatewayKeys
from collector.problems import OHTTP_KEY
from collector.settings import Settings
from collector.storage import queries
from ldp_client.documents.errors import InputError
from ldp_client.oblivious.binary_http import Request
from ldp_client.oblivious.encapsulation import ANSWER_OVERHEAD_BYTES, EncapsulationError
from ldp_client.oblivious.sizes import ANSWER_BYTES, BESIDE_BYTES, request_bytes
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


def test_all_requests_and_all_answers_have_one_size(gateway, make_report, study, monkeypatch):
    report, other = make_report(study), make_report(study)
    statuses = [gateway.put(report).status, gateway.put(report).status, gateway.delete(report).status]
    statuses += [gateway.put(report).status, gateway.delete(other, secret=bytes(16)).status]
    statuses += [gateway.put(make_report(study, digest="0" * 64)).status]
    statuses += [gateway.put(make_report(study, version=7)).status]
    nowhere = f"/v1/studies/unheard-of/reports/{other.id}"
    statuses += [gateway.ask("PUT", nowhere, JSON, content=other.to_json().encode()).status]
    statuses += [gateway.ask("GET", SERVED, ("if-none-match", f'"{study.digest}"')).status]
    statuses += [
        gateway.ask("GET", "/v1/studies/habits?version=9").status,
        gateway.ask("GET", "/metrics").status,
    ]
    gateway.harness.close()
    statuses.append(gateway.put(other).status)

    def away(*_):
        raise queries.OtherReleaseError("in a test")

    monkeypatch.setattr(gateway.harness.collector.writer, "upload", away)
    gateway.harness.client.post("/v1/studies/habits/open", headers=gateway.harness.operator)
    statuses.append(gateway.put(other).status)
    assert statuses == [201, 200, 200, 410, 403, 422, 404, 422, 304, 404, 404, 410, 503]
    ((sent, came),) = gateway.sizes
    assert sent == SIZE + 55
    assert came == ANSWER_BYTES + ANSWER_OVERHEAD_BYTES


def test_oversized_answer_becomes_answer_too_large(make_gateway, make_study):
    gateway = make_gateway()
    assert gateway.harness.publish(make_study(2, purpose="long " * 900)).status_code == 201
    assert problem(gateway.ask("GET", "/v1/studies/habits?version=2")) == (406, "answer-too-large")
    assert gateway.ask("GET", SERVED).status == 200
    assert {came for _, came in gateway.sizes} == {ANSWER_BYTES + ANSWER_OVERHEAD_BYTES}


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
    # Deletions: see tests/attacks/test_withdrawals_in_the_clear.py.
    refused = [harness.put(report), harness.post([report.to_document()])]
    for answer in refused:
        assert (answer.status_code, answer.json["type"]) == (403, "urn:ldpkit:problem:oblivious-needed")
    assert result(gateway.put(report)) == (201, "stored")
    # Studies are fetched, and operators work, as ever.
    assert harness.client.get("/v1/studies/habits").status_code == 200
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


def test_request_size_is_rounded_up_to_512_byte_steps():
    assert request_bytes(1) == request_bytes(512) == BESIDE_BYTES + 512
    assert request_bytes(513) == request_bytes(512) + 512
