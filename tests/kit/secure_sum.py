"""Nodes on loopback in threads of the test, and devices that send them shares."""

from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from threading import Thread
from types import SimpleNamespace

import pytest
from werkzeug.serving import make_server

from collector.nodes.app import create_node_app
from collector.nodes.drawing import Drawing, Statement, split_ids
from collector.nodes.keys import NodeKeys
from ldp_client import mechanisms_of
from ldp_client.core.tokens import header_of
from ldp_client.device import outbox
from ldp_client.secure_sum import SHARES, sealed_shares, share_path, shares_nonce
from ldpkit.cli.node import collect, nodes_of
from schemas import Study
from tests import studies
from tests.kit.answers import delete_study
from tests.kit.collectors import ensure_database
from tests.ldp_client.issuers import Issuer, channel_of, token_of

TOKEN = "token-of-the-operators"
NODES = 3
POLL_SECONDS = 0.01
STATED = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}


def _asked(ask, model, mechanism=None, **fields):
    return {"ask": ask, **fields, "mechanism": STATED | (mechanism or {}), "model": {"name": model}}


AGE, RATE = {"id": "age", "bounds": ["0", "1"]}, {"id": "rate", "bounds": ["0", "1"]}
QUESTIONS = {
    "hours": _asked("number", "normal", bounds=["0", "10"]),
    "wait": _asked("number", "exponential", {"cells": 16}, bounds=["0", "10"]),
    "fruit": _asked("choice", "multinomial", choices=["apple", "pear", "plum"]),
    "ever": _asked("yes_no", "bernoulli"),
    "rating": _asked("record", "linear_regression", features=[AGE], norm="1", response=RATE),
    "spread": _asked(
        "record",
        "marginals",
        {"statistic": "marginals", "share": "0.2"},
        features=[AGE, {"id": "weight", "bounds": ["-40", "40"]}],
        response=RATE,
    ),
}
ANSWERS = {
    "hours": 3,
    "wait": 9,
    "fruit": "pear",
    "ever": True,
    "rating": {"age": 0.2, "rate": 0.4},
    "spread": {"age": 0.3, "weight": -7, "rate": 0.9},
}
# One machine under two names, as devices demand at least two hosts.
HOSTS = ("127.0.0.1", "localhost", "127.0.0.1")
ADDRESSES = [
    f"http://{HOSTS[node]}:{9000 + node}#" + f"a{node}" * 32 + f"b{node}" * 32 for node in range(NODES)
]
MOST, FEWEST = 6, 4
CODE = "a code of the issuer's"
PATIENCE = 60


def build_study(*names, **protocol):
    """A study of these questions (all, if none is named); `protocol` replaces fields of its protocol."""
    questions = [{"id": name, **QUESTIONS[name]} for name in names or QUESTIONS]
    stated = {"name": "secure_sum", "nodes": ADDRESSES, "devices": 20, "max_faulty": 5, **protocol}
    return Study(studies.document(*questions, id="summed", protocol=stated))


def tokened_study(*names, issuer="https://issuer.example", **protocol):
    """A study as `build_study` makes it, whose shares need tokens."""
    return Study({**build_study(*names, **protocol).document, "channel": channel_of(issuer)})


@dataclass
class Share:
    """One sealed share, and its token in headers."""

    node: str
    path: str
    body: bytes
    headers: dict[str, str]


def shares_of(study, answers):
    """What one device sends whose owner trusts all of the study's nodes; first its id and secret."""
    mechanisms = mechanisms_of(study)
    report, bodies = sealed_shares(study, mechanisms, answers)
    digests = b"".join(sha256(body).digest() for body in bodies)
    token = token_of(study, nonce=shares_nonce(report.id, digests))
    headers = {"Authorization": header_of(token), SHARES: digests.hex()}
    path, nodes = share_path(study.id, report.id), study.protocol.nodes
    return report, [Share(node.url, path, body, headers) for node, body in zip(nodes, bodies)]


class Node:
    """A node on loopback. trouble: what it does with a request instead, if anything."""

    def __init__(self, folder, name, host):
        self.host = host
        self.keys = NodeKeys.generate()
        self.key_file = folder / f"{name}.key"
        self.keys.save(self.key_file)
        self.database = folder / f"{name}.sqlite3"
        self.trouble = None
        # Devices reach it also while its application is away for a moment.
        self._server = make_server(HOSTS[0], 0, self._call, threaded=True)
        Thread(target=self._server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        self._is_open = False
        self.start()

    def start(self):
        """Open the application, also again after `stop`."""
        database = ensure_database(f"sqlite:///{self.database}")
        # The disk of a busy machine takes seconds for a commit now and then.
        settings = {"database": database, "token": TOKEN, "lock_timeout": PATIENCE}
        self.app = create_node_app(settings, key_file=self.key_file)
        self._is_open = True

    def stop(self):
        """Close the application."""
        if self._is_open:
            self.app.extensions["ldpkit"].close()
            self._is_open = False

    def restart(self):
        """Close the application, and open it again."""
        self.stop()
        self.start()

    def close(self):
        """Close the server, too."""
        self._server.shutdown()
        self._server.server_close()
        self.stop()

    def _call(self, environment, start_response):
        answer = self.trouble(environment) if self.trouble else None
        return (answer or self.app)(environment, start_response)

    @property
    def url(self):
        return f"http://{self.host}:{self._server.server_port}"

    @property
    def address(self):
        return f"{self.url}#{self.keys.fragment}"

    @property
    def operator(self):
        return {"Authorization": f"Bearer {TOKEN}"}

    def publish(self, study):
        return self.app.test_client().post("/v1/studies", json=study.document, headers=self.operator)

    def put(self, message, path=None):
        return self.app.test_client().put(
            path or message.path,
            data=message.body,
            content_type="application/octet-stream",
            headers=message.headers,
        )

    def post(self, path, **options):
        return self.app.test_client().post(f"/v1/studies/summed{path}", headers=self.operator, **options)

    def get(self, path):
        return self.app.test_client().get(f"/v1/studies/summed{path}", headers=self.operator)


class Network:
    """Three nodes with one study published, and devices."""

    def __init__(self, nodes, issuer):
        self.nodes = nodes
        self.issuer = issuer

    def publish(self, *names, **protocol):
        """Publish a study of `MOST` devices, of which `FEWEST` are enough."""
        size = {"devices": MOST, "max_faulty": MOST - FEWEST, **protocol}
        nodes = [node.address for node in self.nodes]
        self.study = tokened_study(*names, issuer=self.issuer.url, nodes=nodes, **size)
        self.mechanisms = mechanisms_of(self.study)
        for node in self.nodes:
            assert node.publish(self.study).status_code == 201
        return self.study

    def messages(self):
        """One device's messages, not yet sent."""
        answers = {name: ANSWERS[name] for name in self.mechanisms}
        return shares_of(self.study, answers)[1]

    def draw(self):
        """Close all nodes, and have them commit and show their nonces, as the closer does."""
        for node in self.nodes:
            assert node.post("/close").status_code == 200
        answers = [node.post("/commitment").get_json() for node in self.nodes]
        lists = [split_ids(b64decode(each["ids"])) for each in answers]
        said = [each["statement"] for each in answers]
        shown = [node.post("/nonce", json={"commitments": said}).get_json() for node in self.nodes]
        nonces = [bytes.fromhex(each["nonce"]) for each in shown]
        return Drawing.of([Statement.from_document(each) for each in said], nonces, lists)

    def answer(self, devices, reach=NODES):
        """So many devices answer; their shares reach the first `reach` nodes."""
        sent = [self.messages() for _ in range(devices)]
        for messages in sent:
            for node, message in list(zip(self.nodes, messages))[:reach]:
                assert node.put(message).status_code == 201
        return sent


def delete_at(node):
    """Delete the study at a node, as its operator does; return how many shares there were."""
    collector = node.app.extensions["ldpkit"]
    deleted = delete_study(collector.database, "summed")
    # As another process sees it a little later.
    collector.current.forget("summed")
    return deleted


@pytest.fixture
def network(tmp_path):
    nodes = [Node(tmp_path, f"node-{index}", HOSTS[index]) for index in range(NODES)]
    with Issuer() as issuer:
        yield Network(nodes, issuer)
    for node in nodes:
        node.close()


@pytest.fixture
def hurried(monkeypatch):
    """Devices wait for no window."""
    monkeypatch.setattr(outbox, "in_next_window", lambda _hours: 0)


def close_study(study, tokens=NODES * (TOKEN,)):
    """Close a study at its nodes; the total as a summary, and the transcript of what they signed."""
    transcript = collect(study, nodes_of(study, tokens))
    return SimpleNamespace(total=transcript.total(study), transcript=transcript)
