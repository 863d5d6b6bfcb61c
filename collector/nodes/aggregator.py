"""Close a secure sum: all nodes confirm one set, and each returns one sum.

Only the nodes keep state between runs: after a crash at any point, the same command gives the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from collector.nodes.client import NodeClient, Send
from collector.nodes.drawing import NONCE_BYTES, Drawing
from collector.nodes.statements import Statement, set_digest, split_ids
from collector.nodes.transcript import NodeSum, Transcript
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import DocumentError, InputError, TransferError
from ldp_client.documents.fields import Hex, Integer
from ldp_client.documents.protocol import SecureSum
from ldp_client.documents.shapes import Record
from schemas import Study

Progress = Callable[[str], None]
COUNTED = Record({"shares": Integer(0, 1 << 53)})
NONCE = Record({"nonce": Hex(2 * NONCE_BYTES)})


def collect(study: Study, senders: Sequence[Send], progress: Progress = lambda _line: None) -> Transcript:
    """Close a study with the protocol secure_sum at all its nodes and get their signed sums, unchecked.

    Args:
        study: the study.
        senders: what sends requests to each node, in the study's order: see `NodeClient`.
        progress: prints a line.

    Raises:
        InputError: before any node closes, if the nodes have another document or one has too few shares;
            after
            that, if too few devices reached every node.
        TransferError: a node refuses or cannot be reached.
        StatementError: a node does not hold what it committed to.
    """
    assert study.protocol is not None
    protocol = study.protocol
    clients = [
        NodeClient(node.url, study.id, send) for node, send in zip(protocol.nodes, senders, strict=True)
    ]
    for client in clients:
        _check_document(client, study)
    _check_counts(protocol, clients, progress)
    for client in clients:
        progress(f"closing {client.url}")
        client.close()
    drawing = _bound_drawing(clients) or _draw(protocol, clients)
    ids = drawing.chosen(study)
    progress(
        f"drew {len(ids)} of the {len(drawing.held)} devices that reached any node, for {protocol.devices}"
    )
    text, digest = drawing.to_json(), set_digest(ids)
    confirmed = [_checked(client, Statement.from_document, client.confirm(text)) for client in clients]
    sums = []
    for client in clients:
        progress(f"sum of {client.url}")
        sums.append(_checked(client, NodeSum.from_document, client.total(digest)))
    return Transcript(study.id, study.digest, drawing, tuple(confirmed), tuple(sums))


def _check_document(client: NodeClient, study: Study) -> None:
    if client.document(study.version) != study.canonical():
        raise InputError(
            f"node {client.url} has published another document as {study.id}: close with that one; "
            "nothing was closed",
            code="node.other_document",
        )


def _check_counts(protocol: SecureSum, clients: Sequence[NodeClient], progress: Progress) -> None:
    """Check before the first node closes, permanently, that each accepts its key and has enough shares.

    Only counts are used: report ids that are listed while devices answer would tell when each device
    answered.
    """
    counts = [_checked(client, _read_count, client.share_count()) for client in clients]
    for client, count in zip(clients, counts):
        progress(f"{client.url} has shares of {count} devices")
        if count < protocol.min_devices:
            raise InputError(
                f"node {client.url} has shares of only {count} devices, and no sum over fewer than "
                f"{protocol.min_devices} (devices − max_faulty) is ever made; this closed no node",
                code="node.too_few_shares",
            )


def _read_count(document: Any) -> int:
    count: int = COUNTED.read(document, "", DocumentError)["shares"]
    return count


def _bound_drawing(clients: Sequence[NodeClient]) -> Drawing | None:
    """Return an earlier run's drawing if a node is bound to its set, even if shares were deleted since."""
    for client in clients:
        found = client.drawing()
        if found is not None:
            drawing: Drawing = _checked(client, Drawing.from_document, found)
            return drawing
    return None


def _draw(protocol: SecureSum, clients: Sequence[NodeClient]) -> Drawing:
    """Collect the commitments of all nodes, then their nonces. Raises InputError for too few devices."""
    held = [_checked(client, split_ids, client.report_ids()) for client in clients]
    everywhere = set(held[0]).intersection(*held[1:])
    if len(everywhere) < protocol.min_devices:
        raise InputError(
            f"only {len(everywhere)} devices reached every node, and no sum over fewer than "
            f"{protocol.min_devices} (devices − max_faulty) is ever made",
            code="node.too_few_devices",
        )
    commitments = [_checked(client, Statement.from_document, client.commit()) for client in clients]
    text = canonical_json({"commitments": [each.to_document() for each in commitments]})
    nonces = [_checked(client, _read_nonce, client.show(text)) for client in clients]
    return Drawing.of(commitments, nonces, held)


def _read_nonce(document: Any) -> bytes:
    return bytes.fromhex(NONCE.read(document, "", DocumentError)["nonce"])


def _checked(client: NodeClient, read: Callable[[Any], Any], answer: Any) -> Any:
    try:
        return read(answer)
    except DocumentError as error:
        raise TransferError(
            f"node {client.url} sent what is not valid: {error}", code="node.wrong_statement"
        ) from None
