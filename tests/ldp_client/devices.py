"""Devices whose person was asked elsewhere, a repeated question, a collector that misbehaves on demand."""

import functools
import json

import pytest

from ldp_client import Device, Direct
from ldp_client.device.requests import fetch_document
from ldp_client.documents.errors import AlreadyAnsweredError, LdpkitError
from ldp_client.mechanisms.choice import RandomizedResponse
from schemas import Study
from schemas.signing import new_key
from tests import studies
from tests.kit.serving import AnsweringServer

consenting = functools.partial(Device, require_consent=False)

STUDY = Study(studies.document(studies.YES_NO))
YES = {"ever": True}


@functools.cache
def signing_pair(_number=0):
    """A private and a public key in PEM, made once for each number."""
    return new_key()


def cheap_study(name):
    """A study of another id, which costs a thousandth."""
    return Study(studies.document(studies.with_epsilon(studies.YES_NO, "0.001"), id=name))


class Memoized(RandomizedResponse):
    """Its permanent answer is the quantised one and a nonce; each report repeats them and adds a byte."""

    payload_size = 10

    def permanent(self, quantised, random):
        return bytes([quantised]) + random(8)

    def instantaneous(self, permanent, random):
        return permanent + random(1)

    def randomise(self, *_):
        raise AssertionError("a device repeats its permanent answer")


def problem(name, digest=""):
    """A refusal in the collector's own words, about the study with that digest."""
    document = {"type": f"urn:ldpkit:problem:{name}", "detail": "in words"}
    return "application/problem+json", json.dumps({**document, **({"digest": digest} if digest else {})})


class Server(AnsweringServer):
    """A collector: answers with the statuses of a list, then 200; keeps what it was sent.

    A good PUT or DELETE gets a receipt; others get what `refusals` has for their status (media type, text),
    else HTML, as proxies send it.

    requests: (method, path, body, headers). content: what GET answers. headers: sent with
    each answer. tls: an SSLContext, for https. stuck: what is in "METHOD /path" of a request that gets 503.
    """

    def __init__(self, content=b"", tls=None):
        self.statuses, self.requests, self.content, self.headers = [], [], content, {}
        self.refusals, self.stuck = {}, "\0"
        super().__init__()
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://{self.address}"

    def asked(self, method):
        return [path for verb, path, _, _ in self.requests if verb == method]

    def respond(self, method, path, body, headers):
        self.requests.append((method, path, body, headers))
        status = self.statuses.pop(0) if self.statuses else 200
        status = 503 if self.stuck in f"{method} {path}" else status
        media_type, content = "application/json", self.content
        if status in self.refusals:
            media_type, text = self.refusals[status]
            content = text.encode()
        elif status not in (200, 201):
            media_type, content = "text/html", b"<html>"
        elif method != "GET":
            result = "stored" if method == "PUT" else "withdrawn"
            content = json.dumps({"id": path.rsplit("/", 1)[1], "result": result}).encode()
        return status, {"Content-Type": media_type, **self.headers}, content


@pytest.fixture
def server():
    """A collector that serves the study."""
    with Server(STUDY.canonical()) as started:
        yield started


PAIR = Study(studies.document(studies.NUMBER, studies.YES_NO))
PAIR_ANSWERS = {"hours": 3, "ever": False}


def answer_in_process(folder, results):
    try:
        consenting(folder, "4").answer(PAIR, PAIR_ANSWERS)
        results.put("answered")
    except AlreadyAnsweredError:
        results.put("refused")
    except LdpkitError as error:
        results.put(str(error))


def race(context, folder, racers):
    results = context.Queue()
    processes = [context.Process(target=answer_in_process, args=(folder, results)) for _ in range(racers)]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    return sorted(outcomes)


def fetch_study(url):
    base, _, study_id = url.partition("/v1/studies/")
    return fetch_document(Direct(), base, study_id), base
