"""A report as the outbox keeps it when it travels as secret shares: all of them, written at once."""

from binascii import b2a_base64

from ldp_client.outbox import Queued
from ldp_client.secure_sum.messages import share_messages
from schemas.canonical import canonical_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from schemas.report import Report
    from schemas.study import Study


def queued_shares(study: "Study", report: "Report", due: int) -> Queued:
    """The sealed shares of one report; `collector` names their nodes. The report itself is kept nowhere."""
    messages = share_messages(study, report)
    body = canonical_json([b2a_base64(message.body).decode().strip() for message in messages])
    nodes = " ".join([message.node for message in messages])
    return Queued.of(study, report, nodes, body, due)
