"""Send a gateway requests that no device sends: it serves only device requests and blocks no one.

Defence: The collector: inside are `PUT` and `DELETE` of a report and `GET` of a study, without an
operator's key, within its own limits; a replay changes nothing, even after retention deleted the report:
a study with a relay and without tokens keeps ids, with their version and day, until it is deleted.
"""

import json
import zlib
from datetime import timedelta

import pytest

from collector.operator.daily import Days
from ldp_client.oblivious.binary_http import MOST_FIELDS, Answer, BinaryError, Request, number
from tests.oblivious.conftest import JSON, SIZE

REPORT = "/v1/studies/habits/reports/" + "0" * 32
SERVED = "/v1/studies/habits?version=1"


def problem(answer):
    return answer.status, json.loads(answer.content)["type"].rsplit(":", 1)[1]


@pytest.fixture
def upload(make_report, study):
    """(a report, its request)"""
    report = make_report(study)
    path = f"/v1/studies/habits/reports/{report.id}"
    return report, Request("PUT", "collector.example", path, [JSON], report.to_json().encode())


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/metrics"),
        ("GET", "/v1/studies"),
        ("GET", "/v1/studies/habits/"),
        ("GET", "/v1/studies/habits/signed/"),
        ("GET", "/v1/studies/habits/export"),
        ("GET", "/v1/studies/habits/summary"),
        ("GET", "/v1/studies/habits/status"),
        ("GET", "/v1/studies/habits/export?version=1"),
        ("GET", "/v1/studies/habits?version=1&after=0"),
        ("GET", "/s/habits"),
        ("GET", "/openapi.json"),
        ("GET", "/.well-known/ohttp-gateway"),
        ("POST", "/ohttp"),
        ("POST", "/v1/studies"),
        ("POST", "/v1/studies/habits/close"),
        ("POST", "/v1/studies/habits/reports"),
        ("POST", "/v1/keys"),
        ("PUT", "/v1/studies/habits/reports/../close"),
        ("PUT", "/v1/studies/habits/reports/" + "0" * 32 + "/"),
        ("PUT", "/v1/studies/%68abits/reports/" + "0" * 32),
        ("PUT", "//v1/studies/habits/reports/" + "0" * 32),
        ("PUT", REPORT + "?x=1"),
        ("PUT", "https://elsewhere.example" + REPORT),
        ("DELETE", "/v1/studies/habits"),
        ("OPTIONS", REPORT),
        ("CONNECT", "collector.example:443"),
        ("put", REPORT),
        ("", ""),
    ],
)
def test_gateway_serves_only_device_routes(gateway, method, path):
    key = ("authorization", f"Bearer {gateway.harness.operator['Authorization'][7:]}")
    assert problem(gateway.ask(method, path)) == (404, "oblivious-route")
    assert gateway.ask(method, path, key).status in (400, 404)
    assert gateway.harness.client.get("/v1/studies/habits").headers["LDPKit-Study"] == "open"


def test_operators_key_has_no_effect_inside_the_gateway(gateway, make_report, study):
    report = make_report(study)
    assert gateway.put(report).status == 201
    path = f"/v1/studies/habits/reports/{report.id}"
    for name in ("authorization", "Authorization"):
        answer = gateway.ask("DELETE", path, (name, gateway.harness.operator["Authorization"]))
        assert problem(answer) == (400, "oblivious-request")
    assert problem(gateway.ask("DELETE", path)) == (401, "withdrawal-unproven")
    assert len(gateway.harness.exported()) == 1


@pytest.mark.parametrize(
    "field",
    [
        ("connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("te", "trailers"),
        ("upgrade", "h2c"),
        ("proxy-connection", "close"),
        ("expect", "100-continue"),
        ("content-encoding", "gzip"),
        ("content-length", "1"),
        ("content-length", "99999999999"),
        ("content-length", "-1"),
        ("content-type", "application/json"),
    ],
)
def test_connection_fields_and_wrong_lengths_are_rejected(gateway, upload, field):
    """The last one is there twice."""
    _, request = upload
    answer = gateway.ask("PUT", request.path, JSON, field, content=request.content)
    assert problem(answer) == (400, "oblivious-request")
    assert gateway.harness.exported() == []


def test_correct_length_and_unknown_fields_are_accepted(gateway, upload):
    _, request = upload
    more = [
        ("content-length", str(len(request.content))),
        ("x-forwarded-for", "192.0.2.7"),
        ("cookie", "a=b"),
    ]
    seen = []
    target = gateway.harness.app.extensions["ldpkit-gateway"]
    plain = target._target
    target._target = lambda environ, start: seen.append(environ) or plain(environ, start)
    assert gateway.ask("PUT", request.path, JSON, *more, content=request.content).status == 201
    assert not [name for name in seen[0] if "FORWARDED" in name or "COOKIE" in name or name == "REMOTE_ADDR"]


def test_nested_gateway_request_is_rejected(gateway, upload):
    _, request = upload
    inner = gateway.encapsulated(request.encode()).message
    answer = gateway.ask("POST", "/ohttp", ("content-type", "message/ohttp-req"), content=inner)
    assert problem(answer) == (404, "oblivious-route")
    assert gateway.say(gateway.encapsulated(inner)).status == 400
    assert gateway.harness.exported() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"\2" + bytes(40),
        b"\3" + bytes(40),
        b"\xff" * 64,
        b"\0\3PUT\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\3PUT\5https\0" + number(1 << 60),
        b"GET /v1/studies/habits?version=1 HTTP/1.1\r\n\r\n",
        Answer(200).encode(),
        Request("PUT", "", REPORT, [("a", "b")] * (MOST_FIELDS + 1)).encode(),
        Request("PUT", "", REPORT, [("Content-Type", "application/json")]).encode(),
        Request("PUT", "", REPORT, [("a", "b\r\nldpkit-withdrawal: c")]).encode(),
        Request("PUT\r\n", "", REPORT).encode(),
        Request("PUT", "", REPORT + "\0").encode(),
        Request("PUT", "", REPORT).encode() + b"\0\1",
    ],
)
def test_malformed_inner_request_is_rejected(gateway, content):
    answer = gateway.say(gateway.encapsulated(content))
    assert answer.status in (400, 404)
    assert {came for _, came in gateway.sizes} == {4128}


def test_truncated_request_stores_nothing_without_a_server_error(gateway, upload):
    _, request = upload
    whole = request.encode()
    body_at = whole.index(request.content)
    for end in [*range(0, body_at, 3), body_at, len(whole) - 40]:
        assert gateway.say(gateway.encapsulated(whole[:end])).status in (400, 404, 422)
    assert gateway.harness.exported() == []


def test_damaged_request_gets_a_bare_400(gateway, upload):
    _, request = upload
    message = gateway.encapsulated(request.encode(SIZE)).message
    flipped = [bytearray(message) for _ in range(60)]
    for place, one in enumerate(flipped):
        one[place * 43 % len(message)] ^= 1 << place % 8
    wrong = [bytes(one) for one in flipped] + [
        message[:end] for end in (0, 1, 6, 7, 38, 54, 60, len(message) - 1)
    ]
    # Numbers of keys follow one another from one that is drawn: no key has this one.
    foreign = bytes([message[0] ^ 128]) + message[1:]
    wrong += [message + b"\0", foreign, message * 2]
    for one in wrong:
        answer = gateway.post(one)
        assert (answer.status_code, answer.mimetype) == (400, "application/problem+json")
        assert answer.json["type"].rpartition("ohttp-")[2] in ("key", "malformed")
        assert "ldpkit-withdrawal" not in answer.text
    assert gateway.harness.exported() == []
    assert gateway.post(message).status_code == 200


def test_outer_body_is_not_inflated_and_body_limit_applies_inside(make_gateway):
    gateway = make_gateway(body_limit=1 << 16)
    bomb = zlib.compress(bytes(1 << 24), 9, wbits=31)
    client = gateway.harness.client
    headers = {"Content-Encoding": "gzip"}
    answer = client.post("/ohttp", data=bomb, headers=headers, content_type="message/ohttp-req")
    assert answer.status_code == 400
    assert gateway.post(b"", media_type="application/json").status_code == 415
    assert client.get("/ohttp").status_code == 405
    large = Request("PUT", "", REPORT, [JSON], b"[" * 70_000)
    answer = gateway.say(gateway.encapsulated(large.encode()))
    assert problem(answer) == (413, "body-too-large")


def test_log_contains_no_request_data(gateway, upload, caplog):
    report, request = upload
    gateway.say(gateway.encapsulated(request.encode(SIZE)))
    gateway.ask("GET", "/v1/studies/some-secret-thing/reports")
    gateway.post(b"\1some-secret-thing")
    assert "some-secret-thing" not in caplog.text
    assert report.id not in caplog.text


def test_collector_error_is_reported_only_inside(gateway, upload):
    def broken(_environ, _start):
        raise RuntimeError("in a test")

    gateway.harness.app.extensions["ldpkit-gateway"]._target = broken
    _, request = upload
    assert problem(gateway.say(gateway.encapsulated(request.encode(SIZE)))) == (500, "internal")


@pytest.mark.parametrize("value", [0, 63, 64, 16383, 16384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1])
def test_numbers_are_encoded_as_quic_integers(value):
    assert len(number(value)) == 1 + (value > 63) + 2 * (value > 16383) + 4 * (value > (1 << 30) - 1)
    content = Answer(200, [], b"").encode()
    assert Answer.decode(content).status == 200
    with pytest.raises(BinaryError):
        number(1 << 62)


def test_an_informational_answer_may_come_before_the_final_one():
    first = bytes([1]) + number(103) + number(4) + b"\1a\1b"
    assert Answer.decode(first + Answer(204).encode()[1:]).status == 204
    for status in (0, 99, 600, 70_000):
        with pytest.raises(BinaryError):
            Answer.decode(bytes([1]) + number(status))


def test_replay_does_not_restore_an_expired_report(gateway, make_study, make_report):
    """Retention deletes it in an open study, and the relay kept its bytes."""
    study = make_study(id="rolling", retention={"days": 30})
    assert gateway.harness.publish(study).status_code == 201
    report = make_report(study)
    path = f"/v1/studies/rolling/reports/{report.id}"
    asked = Request("PUT", "collector.example", path, [JSON], report.to_json().encode())
    sent = gateway.encapsulated(asked.encode(SIZE))
    assert gateway.say(sent).status == 201
    days = Days(gateway.harness.collector)
    for _ in range(31):
        gateway.harness.day += timedelta(1)
        days.look()
    assert gateway.harness.summary("rolling").get_json()["questions"]["ever"]["n"] == 0
    assert problem(gateway.say(sent)) == (410, "report-withdrawn")
    assert gateway.harness.summary("rolling").get_json()["questions"]["ever"]["n"] == 0
