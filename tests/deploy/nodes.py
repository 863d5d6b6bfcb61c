"""A secure sum by way of compose's two nodes, through the proxy: invited devices, and a close."""

from __future__ import annotations

import json
from pathlib import Path

from tests.deploy.composed import Machine
from tests.deploy.roots import Inside, call

PORT = 8443
PEOPLE = 12
NAMES = ("node-a", "node-b")
DEVICES = """
import sys
from ldp_client import Device
*nodes, words = sys.argv[1:]
for person, invitation in enumerate(open(words).read().split()):
    first = nodes[0].partition("#")[0]
    device = Device(f"/tmp/members/{person}", max_epsilon="2", collector=first, nodes=nodes)
    study = device.fetch("commute")
    device.consent(study)
    device.answer(study, {"minutes": 30 + person}, invitation)
    assert device.flush().waiting == 0
"""


def try_nodes(machine: Machine, certificate: Path) -> None:
    """Publish a secure sum at both nodes, invite, answer, close. Raises SystemExit where a step fails."""
    folder = certificate.parent.parent / "sum"
    folder.mkdir()
    nodes = [node_address(machine, name) for name in NAMES]
    (folder / "study.json").write_text(json.dumps(study_at(nodes)))
    tokens = [machine.call(name, "ldpkit", "token").strip() for name in NAMES]
    here = Inside(
        environment={
            "PATH": "/opt/ldpkit/bin:/usr/bin:/bin",
            "SSL_CERT_FILE": "/etc/tls.pem",
            "LDPKIT_TOKEN": " ".join(tokens),
        },
        binds={"/etc/tls.pem:ro": certificate, "/mnt": folder},
        tmpfs=["/tmp"],
        folder="/mnt",
    )
    root = machine.roots["ldpkit"]
    for node, token in zip(nodes, tokens, strict=True):
        url = node.partition("#")[0]
        call(root, ["ldpkit", "publish", "study.json", "--collector", url, "--token", token], here)
    call(
        root,
        ["ldpkit", "node", "invite", "study.json", "--count", str(PEOPLE), "--out", "invited"],
        here,
    )
    for number, (node, token) in enumerate(zip(nodes, tokens, strict=True), 1):
        where = ["--collector", node.partition("#")[0], "--token", token]
        call(root, ["ldpkit", "invite", "commute", "--file", f"invited/node-{number}.txt", *where], here)
    call(root, ["python", "-c", DEVICES, *nodes, "invited/invitations.txt"], here)
    call(root, ["ldpkit", "node", "close", "study.json", "--out", "total.json"], here)
    call(root, ["ldpkit", "node", "verify", "study.json", "total.transcript.json"], here)


def node_address(machine: Machine, name: str) -> str:
    """What a study names the node as: its keys, at its name at the proxy."""
    keys = machine.call(name, "cat", "node.address").strip().partition("#")[2]
    return f"https://{name}.example.org:{PORT}#{keys}"


def study_at(nodes: list[str]) -> dict[str, object]:
    """A study for as many devices as there are people."""
    question = {
        "id": "minutes",
        "ask": "number",
        "bounds": ["0", "180"],
        "text": "Minutes?",
        "mechanism": {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"},
        "model": {"name": "normal"},
    }
    protocol = {"name": "secure_sum", "devices": PEOPLE, "max_faulty": 1, "nodes": nodes}
    shared = {"format": "ldpkit.study/1", "id": "commute", "version": 1, "title": "Commuting"}
    return {**shared, "protocol": protocol, "questions": [question]}
