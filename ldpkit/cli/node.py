"""The commands for secure sums: close a study at its nodes, and check a transcript.

Only the nodes keep state between runs: after a crash at any point, the same command gives the same sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from collector.settings import refuse_unknown_variables
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import DocumentError, InputError, SummaryError, TransferError, UsageError
from ldpkit.cli.client import Client, study_path
from ldpkit.cli.commands import TOKEN_VARIABLE, group, out_option, require_yes, study_argument, yes_option
from ldpkit.cli.output import show, warn
from schemas import Study
from schemas.disk import read_bytes, refuse_existing, replacing

if TYPE_CHECKING:
    from collector.nodes.transcript import Transcript
    from ldp_client.documents.shapes import Record

# For one request, retries included: a node expands 100,000 shares of 10,000 numbers in well under a minute.
DEADLINE_SECONDS = 600.0
# The sum of ten million numbers.
MAX_ANSWER_BYTES = 1 << 27


@group("node")
def node() -> None:
    """Close a secure sum at its nodes, or check what they signed."""


@node.command("close", example="node close study.json --out total.json")
@study_argument
@out_option("a summary for ldpkit fit; what the nodes signed goes into *.transcript.json", "TOTAL.json")
@yes_option
def close(study: Study, out: str, yes: bool) -> None:
    """Close a study at its nodes permanently, and get the total.

    LDPKIT_TOKEN has a key of each node, in the study's order, with spaces between.
    """
    # 1. Check what could fail after the nodes have closed, which is permanent.
    path = f"{out.removesuffix('.json')}.transcript.json"
    refuse_existing(path)
    refuse_unknown_variables()
    nodes = nodes_of(study, os.environ.get(TOKEN_VARIABLE, "").split())
    hours = 2 * study.channel.hours if study.channel else 0
    warn(
        f"shares to {study.id} leave up to {hours} hours after they were made, uncounted until then: "
        "after closing, late ones are refused permanently. Close that much later than the last answers"
    )
    require_yes(yes, f"closing {study.id} at its nodes")
    # 2. Close, draw and sum, with both files open. The transcript is kept also if a node or a device was
    # wrong: it is evidence.
    with replacing(out, is_new=True) as file:
        with replacing(path, is_new=True) as evidence:
            transcript = collect(study, nodes, warn)
            evidence.write(transcript.to_json())
        try:
            total = transcript.total(study)
        except SummaryError as error:
            raise InputError(
                f"{error}; what each node signed is in {path}", code="node.closing_failed"
            ) from None
        file.write(total.to_json())
    show([f"total in {out}, what the nodes signed in {path}"])


def nodes_of(study: Study, tokens: Sequence[str]) -> list[NodeClient]:
    """Return the clients of a study's nodes. tokens: the nodes' operator keys, in the study's order.

    Raises InputError for a study without nodes, and UsageError for another number of keys.
    """
    if study.protocol is None:
        raise InputError(
            f"study {study.id} has no protocol 'secure_sum': its reports go to a collector",
            code="study.not_secure_sum",
        )
    urls = [node.url for node in study.protocol.nodes]
    if len(tokens) != len(urls):
        raise UsageError(
            f"closing needs {len(urls)} keys in {TOKEN_VARIABLE}, each node's in the study's order, "
            f"with spaces between; it has {len(tokens)}",
            code="node.keys_needed",
        )
    return [NodeClient(url, token, study.id) for url, token in zip(urls, tokens)]


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

    def request(self, method: str, path: str, text: str = "", shape: Record | None = None) -> Any:
        """Return the bytes of an answer, or its fields in this shape. Raises TransferError.

        Args:
            method: the request's method.
            path: below the study's.
            text: a JSON text to send.
            shape: of the answer.
        """
        body = text.encode() if method == "POST" else None
        path = self._base + path
        content = self.send(method, path, body, most=MAX_ANSWER_BYTES, seconds=DEADLINE_SECONDS).body
        if shape is None:
            return content
        try:
            return shape.read(parse_json(content, DocumentError, MAX_ANSWER_BYTES), "", DocumentError)
        except DocumentError as error:
            raise TransferError(
                f"node {self.url} sent what is not valid: {error}", code="node.wrong_answer"
            ) from None


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
    from collector.nodes.drawing import COMMITTED, SHOWN, STATE, Drawing, Statement, split_ids
    from collector.nodes.transcript import SUM, NodeSum, Transcript

    assert study.protocol is not None
    # 1. Check, before a node closes permanently, that all nodes are ready.
    for node in nodes:
        if node.request("GET", f"?version={study.version}") != study.canonical():
            raise InputError(
                f"node {node.url} has published another document as {study.id}: close with that one; "
                "nothing was closed",
                code="node.other_document",
            )
    states = [node.request("GET", "/sum", shape=STATE) for node in nodes]
    bound = next((state["drawing"] for state in states if state["drawing"] is not None), None)
    for node, state in zip(nodes, states):
        progress(f"{node.url} has shares of {state['shares']} devices")
        if bound is None and state["shares"] < study.protocol.min_devices:
            raise InputError(
                f"node {node.url} has shares of {state['shares']} devices: a sum needs "
                f"{study.protocol.min_devices} (devices − max_faulty). No node was closed",
                code="node.too_few_shares",
            )
    # 2. Close.
    for node in nodes:
        progress(f"closing {node.url}")
        node.request("POST", "/close")
    # 3. Draw the set, unless an earlier run bound a node to it, even if shares were deleted since: collect
    # the commitments of all nodes, then their nonces.
    if bound is None:
        answers = [node.request("POST", "/commitment", shape=COMMITTED) for node in nodes]
        commitments = [Statement(**answer["statement"]) for answer in answers]
        text = canonical_json({"commitments": [each.to_document() for each in commitments]})
        shown = [node.request("POST", "/nonce", text, SHOWN) for node in nodes]
        nonces = [bytes.fromhex(answer["nonce"]) for answer in shown]
        drawing = Drawing.of(commitments, nonces, [split_ids(answer["ids"]) for answer in answers])
    else:
        drawing = Drawing.from_fields(bound)
    drawn, reached = len(drawing.chosen(study)), len(drawing.held)
    progress(f"drew {drawn} of the {reached} devices that reached any node, for {study.protocol.devices}")
    # 4. Have each node bind itself to the set and sum it. All draw the same set of the same commitments.
    text, sums = drawing.to_json(), []
    for node in nodes:
        progress(f"sum of {node.url}")
        sums.append(NodeSum.from_fields(node.request("POST", "/sum", text, SUM)))
    return Transcript(drawing, tuple(sums))


@node.command("verify", example="node verify study.json total.transcript.json")
@study_argument
@click.argument("transcript", metavar="TRANSCRIPT.json")
def verify(study: Study, transcript: str) -> None:
    """Check a transcript against its study."""
    from collector.nodes.transcript import Transcript

    signed = Transcript.from_json(read_bytes(transcript))
    total = signed.total(study)
    devices = next(iter(total.questions.values())).n
    held = ", ".join(str(each.devices) for each in signed.drawing.commitments)
    show(
        [
            f"{len(signed.sums)} nodes signed the same set of {devices} devices, and these sums",
            f"they drew it together after the close, when they held the shares of {held} devices",
        ]
    )
