"""Sealed shares of a secure sum: how the outbox stores them, and their exchange with the nodes."""

import json
from binascii import a2b_base64
from collections.abc import Callable
from hashlib import sha256

from ldp_client.device.outbox import Queued
from ldp_client.device.requests import Outcome, delete_report, judged, put_share, why_not_over
from ldp_client.device.transport import Transport
from ldp_client.documents.canonical import canonical_json, to_base64
from ldp_client.documents.study import Study
from ldp_client.explain import report_size
from ldp_client.mechanisms import mechanisms_of
from ldp_client.secure_sum import OVERHEAD_BYTES, SEED_BYTES, share_path, shares_nonce


def body_size(study: Study) -> int:
    """Return the length of an outbox body: a report's text, or all shares of a secure sum."""
    if study.protocol is None:
        return report_size(study)
    size = sum([mechanism.payload_size for mechanism in mechanisms_of(study).values()])
    shares = [size, *[SEED_BYTES for _ in study.protocol.nodes[1:]]]
    return len(body_of([bytes(share + OVERHEAD_BYTES) for share in shares]))


def body_of(shares: list[bytes]) -> str:
    """Return sealed shares as the outbox stores them."""
    return canonical_json([to_base64(share) for share in shares])


def put_shares(transport: Transport, queued: Queued, token: bytes) -> Outcome:
    """Send every share once: "sent" if every node has its share, "refused" if a node refuses permanently.

    token: each node accepts it once.
    """
    shares, digests = _sealed(queued)

    def put(url: str, index: int) -> Outcome:
        return put_share(transport, url, shares[index], token, digests)

    return _worst(_at_all(queued, put), ("refused", "waiting", "kept"))


def _sealed(queued: Queued) -> tuple[list[bytes], bytes]:
    """Return the sealed shares, and the SHA-256 of each in one byte string."""
    shares = [a2b_base64(text) for text in json.loads(queued.body)]
    return shares, b"".join([sha256(share).digest() for share in shares])


def nonce_for(queued: Queued) -> bytes:
    """Return the nonce that binds a token to these shares, b"" for a report that is no secure sum.

    With an unbound token, a node could submit its own shares to nodes that the device contacts later.
    """
    return shares_nonce(queued.report_id, _sealed(queued)[1]) if queued.nodes else b""


def delete_shares(transport: Transport, queued: Queued) -> Outcome:
    """Ask every node once to delete its share: "sent" if all have deleted, "refused" if all keep theirs.

    No sum can be made without a share, but only its node says that the share is gone. While other nodes keep
    theirs, that settles nothing: a lying node would leave the answer in the sum, and the device without its
    secret. So the nodes are asked again, as a node whose sum lacks the device finally deletes its share. The
    outcome becomes "refused" when the wait for a closed study ends.
    """
    outcomes = _at_all(queued, lambda url, _index: delete_report(transport, url, queued.secret))
    kept = [outcome for outcome in outcomes if outcome.state == "refused"]
    deleted = [outcome for outcome in outcomes if outcome.state == "sent"]
    if not kept or not deleted or len(kept) + len(deleted) < len(outcomes):
        return _worst(outcomes, ("waiting", "kept", "refused"))
    names = [
        ", ".join([node for node, outcome in zip(queued.nodes, outcomes) if outcome.state == state])
        for state in ("sent", "refused")
    ]
    reason = (
        f"deleted, as these nodes report: {names[0]}; kept for the sum: {names[1]}. The sum leaves this "
        "answer out only if the deleting nodes tell the truth"
    )
    is_over = not any([why_not_over(queued.closes, outcome.date) for outcome in kept])
    return Outcome("refused" if is_over else "kept", reason)


def _at_all(queued: Queued, ask: Callable[[str, int], Outcome]) -> list[Outcome]:
    """Return the judged answer of each node. All nodes are asked, whatever the others answer."""
    path = share_path(queued.study, queued.report_id)
    return [judged(queued, ask(node + path, index)) for index, node in enumerate(queued.nodes)]


def _worst(outcomes: list[Outcome], order: tuple[str, ...]) -> Outcome:
    """Return the first outcome in this order of states."""
    for state in order:
        for outcome in outcomes:
            if outcome.state == state:
                return outcome
    return outcomes[0]
