"""Close a secure sum: all nodes draw one set of shares, and each returns its sum over that set.

Only the nodes keep state between runs: after a crash at any point, the same command gives the same sums.
"""

from collections.abc import Callable, Sequence
from typing import Any

from collector.nodes.drawing import COMMITTED, SHOWN, STATE, Drawing
from collector.nodes.statements import Statement, split_ids
from collector.nodes.transcript import SUM, NodeSum, Transcript
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import DocumentError, InputError, TransferError
from ldp_client.documents.shapes import Record
from ldpkit.cli.client import Client, study_path
from schemas import Study

# For one request, retries included: a node expands 100,000 shares of 10,000 numbers in well under a minute.
DEADLINE_SECONDS = 600.0
# The sum of ten million numbers.
MAX_ANSWER_BYTES = 1 << 27


class NodeClient(Client):
    """The client of a node for one study. Every request may be repeated; a node answers the same again.

    Args:
        url: the node's address.
        token: its operator's key.
        study_id: the study.
    """

    def __init__(self, url: str, token: str, study_id: str) -> None:
        super().__init__(url, token, f"node {url}")
        self._base = study_path(study_id)

    def get(self, path: str) -> bytes:
        """Return an answer's bytes. Raises TransferError."""
        return self.send("GET", self._base + path, most=MAX_ANSWER_BYTES, seconds=DEADLINE_SECONDS).body

    def post(self, path: str, text: str = "") -> bytes:
        """Return the bytes of the answer to this JSON text. Raises TransferError."""
        path = self._base + path
        return self.send("POST", path, text.encode(), most=MAX_ANSWER_BYTES, seconds=DEADLINE_SECONDS).body

    def read(self, shape: Record, body: bytes) -> dict[str, Any]:
        """Return the fields of an answer. Raises TransferError."""
        try:
            fields: dict[str, Any] = shape.read(
                parse_json(body, DocumentError, MAX_ANSWER_BYTES), "", DocumentError
            )
        except DocumentError as error:
            raise TransferError(
                f"node {self.url} sent what is not valid: {error}", code="node.wrong_answer"
            ) from None
        return fields


def collect(
    study: Study, nodes: Sequence[NodeClient], progress: Callable[[str], None] = lambda _line: None
) -> Transcript:
    """Close a study with the protocol secure_sum at all its nodes and get their signed sums, unchecked.

    Args:
        study: the study.
        nodes: the study's nodes, in its order.
        progress: prints a line.

    Raises:
        InputError: before any node closes, if the nodes have another document or one has too few shares.
        TransferError: a node refuses or cannot be reached.
        StatementError: too few devices reached every node, or a node does not hold what it committed to.
    """
    assert study.protocol is not None
    # 1. Check, before a node closes permanently, that all nodes are ready.
    for node in nodes:
        if node.get(f"?version={study.version}") != study.canonical():
            raise InputError(
                f"node {node.url} has published another document as {study.id}: close with that one; "
                "nothing was closed",
                code="node.other_document",
            )
    states = [node.read(STATE, node.get("/sum")) for node in nodes]
    bound = next((state["drawing"] for state in states if state["drawing"] is not None), None)
    for node, state in zip(nodes, states):
        progress(f"{node.url} has shares of {state['shares']} devices")
        if bound is None and state["shares"] < study.protocol.min_devices:
            raise InputError(
                f"node {node.url} has shares of {state['shares']} devices: a sum needs "
                f"{study.protocol.min_devices} (devices − max_faulty). No node was closed",
                code="node.too_few_shares",
            )
    # 2. Close, and draw the set, unless an earlier run bound a node to it, even if shares were deleted since.
    for node in nodes:
        progress(f"closing {node.url}")
        node.post("/close")
    drawing = _draw(nodes) if bound is None else Drawing.from_fields(bound)
    drawn, reached = len(drawing.chosen(study)), len(drawing.held)
    progress(f"drew {drawn} of the {reached} devices that reached any node, for {study.protocol.devices}")
    # 3. Have each node bind itself to the set and sum it. All draw the same set of the same commitments.
    text, sums = drawing.to_json(), []
    for node in nodes:
        progress(f"sum of {node.url}")
        sums.append(NodeSum.from_fields(node.read(SUM, node.post("/sum", text))))
    return Transcript(drawing, tuple(sums))


def _draw(nodes: Sequence[NodeClient]) -> Drawing:
    """Collect the commitments of all nodes, then their nonces."""
    answers = [node.read(COMMITTED, node.post("/commitment")) for node in nodes]
    commitments = [Statement(**answer["statement"]) for answer in answers]
    text = canonical_json({"commitments": [each.to_document() for each in commitments]})
    shown = [node.read(SHOWN, node.post("/nonce", text)) for node in nodes]
    nonces = [bytes.fromhex(answer["nonce"]) for answer in shown]
    return Drawing.of(commitments, nonces, [split_ids(answer["ids"]) for answer in answers])
