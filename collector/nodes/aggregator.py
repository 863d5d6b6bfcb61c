"""Close a secure sum: all nodes confirm one set, and each returns one sum.

Only the nodes keep state between runs: after a crash at any point, the same command gives the same sums.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from collector.nodes.drawing import NONCE_BYTES, Drawing
from collector.nodes.statements import Statement, set_digest, split_ids
from collector.nodes.transcript import NodeSum, Transcript
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import DocumentError, InputError, TransferError
from ldp_client.documents.fields import Hex, Integer
from ldp_client.documents.shapes import Record
from schemas import Study

# For one request, retries included: a node expands 100,000 shares of 10,000 numbers in well under a minute.
DEADLINE_SECONDS = 600.0
# The sum of ten million numbers.
MAX_ANSWER_BYTES = 1 << 27
Progress = Callable[[str], None]
Send = Callable[[str, str, bytes | None], bytes]
COUNTED = Record({"shares": Integer(0, 1 << 53)})
NONCE = Record({"nonce": Hex(2 * NONCE_BYTES)})


class RemoteNode:
    """One node of a study. Every request may be repeated; a node answers the same again.

    Args:
        url: the node's address.
        study_id: the study.
        send: sends a request to the node with its operator's key: method, path and body; returns the body
            of the answer. It retries passing failures. Raises TransferError, which names the node.
    """

    def __init__(self, url: str, study_id: str, send: Send) -> None:
        self.url = url
        self._base = f"/v1/studies/{study_id}"
        self._send = send

    def get(self, path: str, read: Callable[[bytes], Any] = bytes) -> Any:
        """Return what `read` makes of an answer. Raises TransferError."""
        return self._read(read, self._send("GET", self._base + path, None))

    def post(self, path: str, text: str = "", read: Callable[[bytes], Any] = bytes) -> Any:
        """Return what `read` makes of the answer to this JSON text. Raises TransferError."""
        return self._read(read, self._send("POST", self._base + path, text.encode()))

    def _read(self, read: Callable[[bytes], Any], body: bytes) -> Any:
        try:
            return read(body)
        except DocumentError as error:
            raise TransferError(
                f"node {self.url} sent what is not valid: {error}", code="node.wrong_answer"
            ) from None


def collect(study: Study, senders: Sequence[Send], progress: Progress = lambda _line: None) -> Transcript:
    """Close a study with the protocol secure_sum at all its nodes and get their signed sums, unchecked.

    Args:
        study: the study.
        senders: what sends requests to each node, in the study's order: see `RemoteNode`.
        progress: prints a line.

    Raises:
        InputError: before any node closes, if the nodes have another document or one has too few shares;
            after that, if too few devices reached every node.
        TransferError: a node refuses or cannot be reached.
        StatementError: a node does not hold what it committed to.
    """
    assert study.protocol is not None
    addressed = zip(study.protocol.nodes, senders, strict=True)
    nodes = [RemoteNode(node.url, study.id, send) for node, send in addressed]
    # 1. Check, before a node closes permanently, that all nodes are ready.
    for node in nodes:
        if node.get(f"?version={study.version}") != study.canonical():
            raise InputError(
                f"node {node.url} has published another document as {study.id}: close with that one; "
                "nothing was closed",
                code="node.other_document",
            )
    _check_counts(study.protocol.min_devices, nodes, progress)
    # 2. Close, and draw the set, unless an earlier run bound a node to it, even if shares were deleted since.
    for node in nodes:
        progress(f"closing {node.url}")
        node.post("/close")
    bound = (node.get("/drawing", _drawing) for node in nodes)
    drawing: Drawing = next(filter(None, bound), None) or _draw(study.protocol.min_devices, nodes)
    ids = drawing.chosen(study)
    reached, wanted = len(drawing.held), study.protocol.devices
    progress(f"drew {len(ids)} of the {reached} devices that reached any node, for {wanted}")
    # 3. Bind all nodes to the set before any node sums it.
    text = drawing.to_json()
    confirmed = [node.post("/set", text, _statement) for node in nodes]
    sums = []
    for node in nodes:
        progress(f"sum of {node.url}")
        sums.append(node.post("/sum", json.dumps({"set": set_digest(ids)}), _sum))
    return Transcript(study.id, study.digest, drawing, tuple(confirmed), tuple(sums))


def _check_counts(fewest: int, nodes: Sequence[RemoteNode], progress: Progress) -> None:
    """Check that each node accepts its key and has enough shares.

    Only counts are used: report ids that are listed while devices answer would tell when each device
    answered.
    """
    counts = [node.get("/shares/count", _count) for node in nodes]
    for node, count in zip(nodes, counts):
        progress(f"{node.url} has shares of {count} devices")
        if count < fewest:
            raise InputError(
                f"node {node.url} has shares of only {count} devices, and no sum over fewer than {fewest} "
                "(devices − max_faulty) is ever made; this closed no node",
                code="node.too_few_shares",
            )


def _draw(fewest: int, nodes: Sequence[RemoteNode]) -> Drawing:
    """Collect the commitments of all nodes, then their nonces. Raises InputError for too few devices."""
    held = [node.get("/shares", split_ids) for node in nodes]
    everywhere = set(held[0]).intersection(*held[1:])
    if len(everywhere) < fewest:
        raise InputError(
            f"only {len(everywhere)} devices reached every node, and no sum over fewer than {fewest} "
            "(devices − max_faulty) is ever made",
            code="node.too_few_devices",
        )
    commitments = [node.post("/commitment", "", _statement) for node in nodes]
    text = canonical_json({"commitments": [each.to_document() for each in commitments]})
    return Drawing.of(commitments, [node.post("/nonce", text, _nonce) for node in nodes], held)


def _parsed(body: bytes) -> Any:
    return parse_json(body, DocumentError, MAX_ANSWER_BYTES)


def _count(body: bytes) -> int:
    count: int = COUNTED.read(_parsed(body), "", DocumentError)["shares"]
    return count


def _nonce(body: bytes) -> bytes:
    return bytes.fromhex(NONCE.read(_parsed(body), "", DocumentError)["nonce"])


def _drawing(body: bytes) -> Drawing | None:
    document = _parsed(body)
    return None if document is None else Drawing.from_document(document)


def _statement(body: bytes) -> Statement:
    return Statement.from_document(_parsed(body))


def _sum(body: bytes) -> NodeSum:
    return NodeSum.from_document(_parsed(body))
