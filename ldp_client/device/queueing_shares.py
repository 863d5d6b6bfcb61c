"""A report as the outbox keeps it when it travels as secret shares: all of them, written at once."""

from binascii import b2a_base64

from ldp_client.device.outbox import Queued
from ldp_client.documents.canonical import canonical_json
from ldp_client.secure_sum.messages import share_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.device.terms import Terms
    from ldp_client.secure_sum.trusted_nodes import TrustedNodes


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
