"""A collector with a gateway, a relay before it, and devices that are told to go through both."""

from base64 import b64encode

import pytest

from collector.oblivious import GatewayKeys
from ldp_client import Oblivious
from ldp_client.device import outbox
from ldp_client.oblivious.binary_http import Answer, Request, padded
from ldp_client.oblivious.encapsulation import REQUEST_TYPE, encapsulate
from schemas import Study
from tests import studies
from tests.kit.serving import AnsweringServer

JSON = ("content-type", "application/json")
SIZE = 4096


class Gateway:
    """A collector in this process, asked as a device's relay asks it; `sizes`: of all that came and went."""

    def __init__(self, harness, keys):
        self.harness, self.keys, self.sizes = harness, keys, set()

    def post(self, message, media_type=REQUEST_TYPE):
        return self.harness.app.test_client().post("/ohttp", data=message, content_type=media_type)

    def encapsulated(self, content, key=0):
        """Whatever bytes, for one of the keys."""
        public = self.keys.keys[key].private.public_key().public_bytes_raw()
        return encapsulate(self.keys.keys[key].number, public, content)

    def say(self, asked):
        """What the collector says inside to an encapsulated request."""
        outer = self.post(asked.message)
        assert outer.status_code == 200, outer.text
        self.sizes.add((len(asked.message), len(outer.data)))
        return Answer.decode(asked.open(outer.data))

    def ask(self, method, path, *fields, content=b""):
        request = Request(method, "collector.example", path, fields, content)
        return self.say(self.encapsulated(padded(request)))

    def put(self, report, *fields):
        path = f"/v1/studies/{report.study}/reports/{report.id}"
        return self.ask("PUT", path, *(fields or (JSON,)), content=report.to_json().encode())

    def delete(self, report, secret=None):
        path = f"/v1/studies/{report.study}/reports/{report.id}"
        return self.ask("DELETE", path, ("ldpkit-withdrawal", (secret or report.secret).hex()))


class Relay(AnsweringServer):
    """A relay. requests: (path, headers, body). answer: what it answers, or a function of the body."""

    def __init__(self):
        self.requests, self.answer = [], (502, {}, b"")
        super().__init__()
        self.url = f"http://{self.address}/ldpkit"

    def respond(self, method, path, body, headers):  # noqa: ARG002
        self.requests.append((path, headers, body))
        return self.answer(body) if callable(self.answer) else self.answer


@pytest.fixture
def relay():
    with Relay() as relay:
        yield relay


@pytest.fixture
def keys():
    return GatewayKeys.generate().rotated()


@pytest.fixture
def make_gateway(make_harness, keys, tmp_path, study):
    keys.save(tmp_path / "ohttp.keys")

    def make(**settings):
        harness = make_harness(ohttp_keys=str(tmp_path / "ohttp.keys"), published=[study], **settings)
        return Gateway(harness, keys)

    return make


@pytest.fixture
def gateway(make_gateway):
    return make_gateway()


@pytest.fixture
def send(monkeypatch):
    """Flushes a device once, at the moment that its reports wait for."""

    def flush(device):
        with device.ledger.reading() as connection:
            moments = [report.due for report in (*outbox.pending(connection), *outbox.withdrawn(connection))]
        if moments:
            monkeypatch.setattr(outbox, "now", lambda: float(max(moments)))
        return device.flush(1)

    return flush


def batched_study(*questions, **changes):
    """A study whose reports leave in windows of an hour."""
    channel = {"batches": {"hours": 1}}
    return Study(studies.document(*(questions or (studies.YES_NO,)), channel=channel, **changes))


def through(relay, keys):
    """The transport of an app that ships this relay and the gateway's first key."""
    return Oblivious(relay, b64encode(keys.keys[0].configuration).decode())
