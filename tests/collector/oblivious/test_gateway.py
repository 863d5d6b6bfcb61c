"""A collector handles requests from its gateway; the outer answer reveals nothing."""

import json
import zlib
from unittest.mock import Mock

import pytest

from collector.errors import OtherReleaseError
from collector.oblivious import MOST_KEYS, GatewayKey, GatewayKeys
from collector.problems import OHTTP_KEY
from ldp_client.documents.errors import InputError
from ldp_client.oblivious.binary_http import ANSWER_BYTES, DOCUMENT_BYTES, MOST_FIELDS, Request, number
from ldp_client.oblivious.encapsulation import ANSWER_OVERHEAD_BYTES
from tests.kit.collectors import TOKEN, build_report
from tests.kit.errors import raises
from tests.kit.oblivious import JSON, SIZE

SERVED = "/v1/studies/habits?version=1"
REPORT = "/v1/studies/habits/reports/" + "0" * 32


def problem(answer):
    return answer.status, json.loads(answer.content)["type"].rsplit(":", 1)[1]


def test_sizes_depend_on_the_method_alone(gateway, study, monkeypatch):
    report, other = build_report(study), build_report(study)
    statuses = [gateway.put(report).status, gateway.put(report).status, gateway.delete(report).status]
    statuses += [gateway.put(report).status, gateway.delete(other, secret=bytes(16)).status]
    statuses += [
        gateway.put(build_report(study, **change)).status for change in ({"digest": "0" * 64}, {"version": 7})
    ]
    gateway.harness.close()
    statuses.append(gateway.put(other).status)
    away = Mock(side_effect=OtherReleaseError("in a test"))
    monkeypatch.setattr(gateway.harness.collector.writer, "upload", away)
    gateway.harness.reopen()
    statuses.append(gateway.put(other).status)
    assert statuses == [201, 200, 200, 410, 403, 422, 404, 410, 503]
    assert gateway.sizes == {(SIZE + 55, ANSWER_BYTES + ANSWER_OVERHEAD_BYTES)}
    gateway.sizes.clear()
    known = ("if-none-match", f'"{study.digest}"')
    answers = [gateway.ask("GET", path) for path in (SERVED, SERVED + "9", "/metrics")]
    answers.append(gateway.ask("GET", SERVED, known))
    assert [answer.status for answer in answers] == [200, 404, 404, 304]
    fields = dict(answers[0].fields)
    assert (answers[0].content, fields["ldpkit-study"]) == (study.canonical(), "open")
    assert fields["etag"] == f'"{study.digest}"'
    assert gateway.sizes == {(SIZE + 55, DOCUMENT_BYTES + ANSWER_OVERHEAD_BYTES)}


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
    last, first = (GatewayKey(number, keys.keys[0].private) for number in (255, 0))
    assert GatewayKeys((last, first)).rotated().keys[0].number == 1


@pytest.mark.parametrize("text", ["", "{}", '{"format": "ldpkit.ohttp-keys/1", "keys": []}'])
def test_invalid_key_file_is_rejected(tmp_path, text):
    (tmp_path / "keys").write_text(text)
    with raises(InputError, "oblivious.wrong_key_file"):
        GatewayKeys.load(tmp_path / "keys")


def test_require_ohttp_collector_rejects_direct_reports(make_gateway, study):
    gateway = make_gateway(require_ohttp=True)
    harness, report = gateway.harness, build_report(study)
    for answer in (harness.put(report), harness.post([report.to_document()])):
        assert (answer.status_code, answer.json["type"]) == (403, "urn:ldpkit:problem:oblivious-needed")
    assert gateway.put(report).status == 201
    # Nobody answers in vain: neither study nor page is served directly. Tools still read published versions.
    for path in ("/v1/studies/habits", "/v1/studies/habits/signed", "/s/habits"):
        assert harness.client.get(path).status_code == 403
    assert harness.client.get(SERVED).status_code == 200
    assert gateway.ask("GET", "/v1/studies/habits").status == 200
    assert harness.withdraw(report.id, secret=report.secret).json["result"] == "withdrawn"
    assert harness.exported() == []


KEY = ("authorization", f"Bearer {TOKEN}")
UPLOAD = Request("PUT", "", REPORT, [JSON], b"{}").encode()
ROUTE, REQUEST = (404, "oblivious-route"), (400, "oblivious-request")


@pytest.mark.attack(14)
@pytest.mark.parametrize(
    ("content", "refused"),
    [
        # What a device does not ask for.
        (Request("GET", "", "/metrics", [KEY]).encode(), ROUTE),
        (Request("GET", "", "/v1/studies/habits?version=1&after=0").encode(), ROUTE),
        (Request("POST", "", "/ohttp", [("content-type", "message/ohttp-req")], UPLOAD).encode(), ROUTE),
        (Request("POST", "", "/v1/studies/habits/reports").encode(), ROUTE),
        (Request("PUT", "", "/v1/studies/habits/reports/../close", [KEY]).encode(), ROUTE),
        (Request("PUT", "", "/v1/studies/%68abits/reports/" + "0" * 32).encode(), ROUTE),
        (Request("PUT", "", REPORT + "?x=1").encode(), ROUTE),
        (Request("PUT", "", "https://elsewhere.example" + REPORT).encode(), ROUTE),
        (Request("DELETE", "", "/v1/studies/habits", [KEY]).encode(), ROUTE),
        (Request("put", "", REPORT).encode(), ROUTE),
        (Request("", "", "").encode(), ROUTE),
        # An operator's key, fields that only a connection has, and another length.
        (Request("DELETE", "", REPORT, [KEY]).encode(), REQUEST),
        (Request("DELETE", "", REPORT, [("Authorization", KEY[1])]).encode(), REQUEST),
        (Request("DELETE", "", REPORT).encode(), (401, "withdrawal-unproven")),
        (Request("PUT", "", REPORT, [JSON, ("transfer-encoding", "chunked")], b"{}").encode(), REQUEST),
        (Request("PUT", "", REPORT, [JSON, ("content-length", "1")], b"{}").encode(), REQUEST),
        (Request("PUT", "", REPORT, [JSON, JSON], b"{}").encode(), REQUEST),
        # No request.
        (b"", REQUEST),
        (b"\2" + bytes(40), REQUEST),
        (b"\0\3PUT\5https\0" + number(1 << 60), REQUEST),
        (Request("PUT", "", REPORT, [("a", "b")] * (MOST_FIELDS + 1)).encode(), REQUEST),
        (Request("PUT", "", REPORT, [("a", "b\r\nldpkit-withdrawal: c")]).encode(), REQUEST),
        (UPLOAD + b"\0\1", REQUEST),
        (UPLOAD[: len(UPLOAD) // 2], REQUEST),
    ],
)
def test_gateway_serves_only_what_devices_ask(gateway, content, refused):
    """Someone asks for operators' routes through the gateway, with an operator's key, or sends no request."""
    assert problem(gateway.say(gateway.encapsulated(content))) == refused
    assert gateway.harness.client.get("/v1/studies/habits").headers["LDPKit-Study"] == "open"


@pytest.mark.attack(12)
def test_only_the_fields_of_devices_are_passed_on(gateway, study):
    seen, target = [], gateway.harness.app.extensions["ldpkit-gateway"]
    plain = target._target
    target._target = lambda environ, start: seen.append(environ) or plain(environ, start)
    report = build_report(study)
    length = ("content-length", str(len(report.to_json())))
    more = [length, ("x-forwarded-for", "192.0.2.7"), ("cookie", "a=b")]
    assert gateway.put(report, JSON, *more).status == 201
    assert not [name for name in seen[0] if "FORWARDED" in name or "COOKIE" in name or name == "REMOTE_ADDR"]


@pytest.mark.attack(15)
def test_damaged_request_gets_a_bare_400(gateway):
    """A relay changes requests, to learn from the answers. Vectors have other damages."""
    message = gateway.encapsulated(Request("GET", "", SERVED).encode(SIZE)).message
    # Numbers of keys follow one another from one that is drawn: no key has this one.
    for wrong in (bytes([message[0] ^ 128]) + message[1:], b"", message[:38], message[:-1], message + b"\0"):
        answer = gateway.post(wrong)
        assert (answer.status_code, answer.mimetype) == (400, "application/problem+json")
        assert answer.json["type"].rpartition("ohttp-")[2] in ("key", "malformed")
    assert gateway.post(message).status_code == 200


@pytest.mark.attack(15)
def test_outer_body_is_not_inflated_and_body_limit_applies_inside(make_gateway):
    """A small compressed body grows to gigabytes at the gateway."""
    gateway = make_gateway(body_limit=1 << 16)
    bomb = zlib.compress(bytes(1 << 24), 9, wbits=31)
    headers = {"Content-Encoding": "gzip"}
    client = gateway.harness.client
    answer = client.post("/ohttp", data=bomb, headers=headers, content_type="message/ohttp-req")
    assert answer.status_code == 400
    assert gateway.post(b"", media_type="application/json").status_code == 415
    large = Request("PUT", "", REPORT, [JSON], b"[" * 70_000)
    answer = gateway.say(gateway.encapsulated(large.encode()))
    assert problem(answer) == (413, "body-too-large")


@pytest.mark.attack(13)
def test_log_contains_no_request_data(gateway, study, caplog):
    """Someone reads the log for report ids and paths of relayed requests."""
    report = build_report(study)
    gateway.put(report)
    gateway.ask("GET", "/v1/studies/some-secret-thing/reports")
    gateway.post(b"\1some-secret-thing")
    assert not [word for word in ("some-secret-thing", report.id) if word in caplog.text]


def test_collector_error_is_reported_only_inside(gateway, study):
    gateway.harness.app.extensions["ldpkit-gateway"]._target = Mock(side_effect=RuntimeError("in a test"))
    assert problem(gateway.put(build_report(study))) == (500, "internal")
