"""A secure sum at compose's two nodes, through the proxy: publishing, and a share without a token."""

from __future__ import annotations

import json
from pathlib import Path

from tests.deploy.composed import Machine
from tests.deploy.roots import Inside, call
from tests.ldp_client.issuers import channel_of

PORT = 8443
PEOPLE = 12
NAMES = ("node-a", "node-b")
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


def try_nodes(machine: Machine, certificate: Path) -> None:
    """Publish a secure sum at both nodes and send them a share. Raises SystemExit where a step fails."""
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
        key = ["env", f"LDPKIT_TOKEN={token}"]
        call(root, [*key, "ldpkit", "publish", "study.json", "--collector", url], here)
    call(root, ["python", "-c", SHARE, *nodes], here)
    for node, token in zip(nodes, tokens, strict=True):
        key = ["env", f"LDPKIT_TOKEN={token}"]
        where = ["--collector", node.partition("#")[0]]
        call(root, [*key, "ldpkit", "status", "commute", *where], here)


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
    channel = channel_of("https://issuer.example.org")
    return {**shared, "protocol": protocol, "channel": channel, "questions": [question]}
