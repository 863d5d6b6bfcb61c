"""Sealed shares of a secure sum: how the outbox keeps them, and their way to the nodes and back."""

import json
from binascii import a2b_base64, b2a_base64
from hashlib import sha256

from ldp_client.device.outbox import Queued
from ldp_client.device.upload import Outcome, delete_report, put_share
from ldp_client.documents.canonical import canonical_json
from ldp_client.secure_sum.messages import node_invitation, share_messages, share_path, shares_nonce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ldp_client.device.terms import Terms
    from ldp_client.secure_sum.trusted_nodes import TrustedNodes

    Judge = Callable[[str, Outcome], Outcome]


def queued_shares(
    terms: "Terms", answers: "dict[str, Any]", trusted: "TrustedNodes", invitation: str, due: int
) -> Queued:
    """The sealed shares of one device's answers; `collector` names their nodes.

    Raises AnswerError, and RefusedError as `share_messages` does. The answers themselves are kept nowhere.
    """
    report, messages = share_messages(terms.study, terms.mechanisms, answers, trusted, invitation)
    body = canonical_json([b2a_base64(message.body).decode().strip() for message in messages])
    nodes = " ".join([message.node for message in messages])
    return Queued.of(terms.study, report, nodes, body, due, invitation)


def put_shares(queued: "Queued", judge: "Judge", token: bytes = b"") -> Outcome:
    """Send every share once: "sent" when every node has its own, "refused" when one refuses for good.

    judge: says of a node, by its base URL, what its answer means. token: each node takes it once.
    """
    shares, digests = _sealed(queued)

    def put(url: str, index: int) -> Outcome:
        return put_share(url, shares[index], node_invitation(queued.invitation, index), token, digests)

    return _at_all(queued, put, judge)


def _sealed(queued: "Queued") -> "tuple[list[bytes], bytes]":
    """The sealed shares, and SHA-256 of each."""
    shares = [a2b_base64(text) for text in json.loads(queued.body)]
    return shares, b"".join([sha256(share).digest() for share in shares])


def nonce_for(queued: "Queued") -> bytes:
    """The nonce of a token for these shares alone, none for another report: with one that is good for any, a
    node could let in others of its own wherever the device comes later.
    """
    return shares_nonce(queued.report_id, _sealed(queued)[1]) if queued.nodes else b""


def delete_shares(queued: "Queued", judge: "Judge") -> Outcome:
    """Ask every node once to delete its share: "sent" once all have spoken and one has none any more, as no
    sum is made without it; "refused" when all keep theirs.
    """
    worst = ("waiting", "kept", "stuck", "sent", "refused")
    return _at_all(queued, lambda url, _index: delete_report(url, queued.secret), judge, worst)


def _at_all(
    queued: "Queued",
    ask: "Callable[[str, int], Outcome]",
    judge: "Judge",
    worst: "tuple[str, ...]" = ("refused", "stuck", "waiting", "kept"),
) -> Outcome:
    """The worst of the nodes' answers, in this order: each is asked, whatever the others say."""
    path = share_path(queued.study, queued.report_id)
    outcomes = [judge(node, ask(node + path, index)) for index, node in enumerate(queued.nodes)]
    for state in worst:
        for outcome in outcomes:
            if outcome.state == state:
                return outcome
    return outcomes[0]
