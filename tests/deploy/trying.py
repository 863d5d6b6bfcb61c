"""What is asked of the services once they run: a summary, a secure sum, the proxy's manners, Prometheus."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from schemas import Study
from tests import studies
from tests.deploy.composed import SERVICES, Machine
from tests.deploy.roots import Inside, call
from tests.kit.collectors import device_report
from tests.ldp_client.issuers import channel_of

PORT = 8443
PEOPLE = 20
STUDY = studies.document({**studies.YES_NO, "text": "Have you ever?"}, id="habits")
DEVICES = """
import sys
from ldp_client import Device
for person in range(int(sys.argv[2])):
    device = Device(f"/tmp/devices/{person}", max_epsilon="2", collector=sys.argv[1])
    study = device.fetch("habits")
    device.consent(study)
    device.answer(study, {"ever": person % 2 == 0})
    assert device.flush().sent == 1
"""


# Devices need an issuer of tickets and wait for windows: a node answers a share without a token instead.
SHARE = """
import sys
from ldp_client import Direct
from ldp_client.device.requests import put_share
from ldp_client.documents.study import Study
from ldp_client.secure_sum import TrustedNodes, sealed_shares, share_path
from ldp_client import mechanisms_of
study = Study.from_json(open("study.json").read())
trusted = TrustedNodes([node for node in sys.argv[1:]])
report, shares = sealed_shares(study, mechanisms_of(study), {"minutes": 30}, trusted)
for node, share in zip(study.protocol.nodes, shares):
    outcome = put_share(Direct(), node.url + share_path(study.id, report.id), share, b"", b"")
    assert outcome.state == "kept" and "ticket" in outcome.reason, outcome
"""


def asking(machine: Machine, certificate: Path, name: str, document: dict[str, Any]) -> tuple[str, Inside]:
    """A service's address, and how a command of our image asks it: beside a study.json, and with its key."""
    folder = machine.state / f"asking-{name}"
    folder.mkdir()
    (folder / "study.json").write_text(json.dumps(document))
    environment = {
        "PATH": "/opt/ldpkit/bin:/usr/bin:/bin",
        "SSL_CERT_FILE": "/etc/tls.pem",
        "LDPKIT_TOKEN": machine.call(name, "ldpkit", "token").strip(),
    }
    binds = {"/etc/tls.pem:ro": certificate, "/mnt": folder}
    return f"https://{name}.example.org:{PORT}", Inside(environment, binds, tmpfs=["/tmp"], folder="/mnt")


def try_summary(machine: Machine, certificate: Path) -> None:
    """Publish a study through the proxy, answer as devices, and download the summary of what came."""
    root = machine.roots["ldpkit"]
    url, inside = asking(machine, certificate, "collector", STUDY)
    call(root, ["ldpkit", "publish", "study.json", "--collector", url], inside)
    call(root, ["python", "-c", DEVICES, url, str(PEOPLE)], inside)
    call(root, ["ldpkit", "export", "habits", "--collector", url, "--out", "summary.json"], inside)
    summary = json.loads((inside.binds["/mnt"] / "summary.json").read_text())
    assert summary["questions"]["ever"]["n"] == PEOPLE


def try_nodes(machine: Machine, certificate: Path) -> None:
    """Publish a secure sum at both nodes and send them a share."""
    root, names = machine.roots["ldpkit"], ("node-a", "node-b")
    keys = [machine.call(name, "cat", "node.address").strip().partition("#")[2] for name in names]
    nodes = [f"https://{name}.example.org:{PORT}#{key}" for name, key in zip(names, keys, strict=True)]
    asked = [asking(machine, certificate, name, summed_study(nodes)) for name in names]
    for url, inside in asked:
        call(root, ["ldpkit", "publish", "study.json", "--collector", url], inside)
    call(root, ["python", "-c", SHARE, *nodes], asked[0][1])
    for url, inside in asked:
        call(root, ["ldpkit", "status", "commute", "--collector", url], inside)


def summed_study(nodes: list[str]) -> dict[str, Any]:
    """A secure sum of as many devices as there are people."""
    noise = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}
    question = {**studies.AGE, "id": "minutes", "bounds": ["0", "180"], "mechanism": noise}
    protocol = {"name": "secure_sum", "devices": PEOPLE, "max_faulty": 1, "nodes": nodes}
    channel = channel_of("https://issuer.example.org")
    return studies.document(question, id="commute", protocol=protocol, channel=channel)


def try_proxy(machine: Machine, certificate: Path) -> None:
    """What nginx lets through, what it stops, and that it keeps nothing."""
    for name in ("collector", "node-a", "node-b"):
        # How the engine would ask whether a service lives, at the address that it has here.
        _kind, *words = SERVICES[name]["healthcheck"]["test"]
        machine.call(name, *[str(word).replace("127.0.0.1", machine.address(name)) for word in words])
    context = ssl.create_default_context(cafile=str(certificate))

    def client(name: str = "collector") -> Client:
        return Client(machine.address("proxy"), f"{name}.example.org", context)

    one, problem = client(), "application/problem+json"
    report = device_report(Study(STUDY)).to_document()
    path = f"/v1/studies/habits/reports/{report['id']}"
    body = json.dumps(report).encode()
    assert one.ask("PUT", path, body) == (201, "application/json")
    assert one.ask("PUT", path, body) == (200, "application/json")
    assert one.ask("PUT", path, b"{}") == (422, problem)
    assert one.ask("GET", "/v1/studies/nothing") == (404, problem)
    assert one.ask("GET", "/metrics") == (401, problem)
    # The proxy keeps the connection open.
    assert one.connections == 1
    assert client().ask("PUT", path, b"x" * ((1 << 20) + 1)) == (413, "text/html")
    node = client("node-a")
    assert node.ask("GET", "/healthz") == (200, "application/json")
    large = json.dumps({"x": "y" * (2 << 20)}).encode()
    # With its key, as a node that refuses a stranger does not read the rest. The node refuses, not the proxy.
    key = machine.call("node-a", "ldpkit", "token").strip()
    status, kind = node.ask("POST", "/v1/studies/habits/sum", large, Authorization=f"Bearer {key}")
    assert (400 <= status < 500, status == 413, kind) == (True, False, problem)
    assert client().ask("GET", "/healthz", Host="other.example.org") == (421, "text/html")
    # No log has a trace of a request.
    for name in ("proxy", "collector", "node-a"):
        said = machine.log(name).read_text(encoding="utf-8")
        assert not [trace for trace in (report["id"], "habits", "127.0.0.", "PUT ") if trace in said], name


class Client:
    """Requests over one connection by TLS, to an address under a name that its certificate has."""

    def __init__(self, address: str, name: str, context: ssl.SSLContext) -> None:
        self.connections = 0
        self._address = address
        self._connection = http.client.HTTPSConnection(name, PORT, context=context, timeout=30)
        self._connection._create_connection = self._connect

    def ask(self, method: str, path: str, body: bytes | None = None, **named: str) -> tuple[int, str]:
        """The answer's status and media type."""
        headers = {"Content-Type": "application/json", **named}
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status, answer.headers.get("Content-Type", "").partition(";")[0]

    def _connect(self, _address: Any, *arguments: Any) -> Any:
        self.connections += 1
        return socket.create_connection((self._address, PORT), *arguments)


def try_watching(machine: Machine, _certificate: Path) -> None:
    """That Prometheus takes its settings and rules, and reaches the collector with the key it was given."""
    machine.call("prometheus", "promtool", "check", "config", "/etc/prometheus/prometheus.yml")
    with machine.up("prometheus", 9090):
        deadline = time.monotonic() + 60
        while asked(machine, 'up{job="ldpkit"}') != ["1"]:
            assert time.monotonic() < deadline
            time.sleep(1)
        # Those of the devices, and the proxy's.
        assert asked(machine, 'ldpkit_study_reports{study="habits"}') == [str(PEOPLE + 1)]


def asked(machine: Machine, expression: str) -> list[str]:
    """The values that Prometheus has for an expression."""
    query = urllib.parse.urlencode({"query": expression})
    url = f"http://{machine.address('prometheus')}:9090/api/v1/query?{query}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return [one["value"][1] for one in json.load(answer)["data"]["result"]]
