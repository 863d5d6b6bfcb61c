"""From a device's answers to what it sends: one sealed share for each node, under one report id.

The one way for an answer to a secure sum to leave a device.
"""

from binascii import hexlify
from hashlib import sha256

from ldp_client.answering import quantise_answers
from ldp_client.core.randomness import read, urandom
from ldp_client.documents.errors import RefusedError
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.secure_sum.sealing import context, seal
from ldp_client.secure_sum.splitting import split
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Study
    from ldp_client.mechanisms.summed import SummedMechanism
    from ldp_client.secure_sum.sealing import Seal
    from ldp_client.secure_sum.trusted_nodes import TrustedNodes

INVITATION_CONTEXT = b"ldpkit.share-invitation/1"


def share_path(study_id: str, report_id: str) -> str:
    """Where a node takes a report's share."""
    return f"/v1/studies/{study_id}/shares/{report_id}"


def node_invitation(invitation: str, node: int) -> str:
    """A device's invitation as one node is shown it: no node learns what lets a share in at another.

    node: its place in the study's route.
    """
    text = b"\0".join([INVITATION_CONTEXT, invitation.encode("utf-8"), str(node).encode()])
    return hexlify(sha256(text).digest()).decode()


class Message:
    """node: base URL; path: where it takes the share. body: the sealed share, the same at every retry.

    invitation: goes along in the header LDPKit-Invitation.
    """

    def __init__(self, node: str, path: str, body: bytes, invitation: str) -> None:
        self.node = node
        self.path = path
        self.body = body
        self.invitation = invitation


def share_messages(
    study: "Study",
    mechanisms: "dict[str, Any]",
    answers: "dict[str, Any]",
    trusted: "TrustedNodes",
    invitation: str,
    random: "Source" = urandom,
    sealer: "Seal" = seal,
) -> "tuple[Report, list[Message]]":
    """A report without payloads, which has a fresh id and its secret, and one message for each node.

    All is checked before any noise is drawn. Raises AnswerError, and RefusedError without an invitation or
    for nodes that the device's owner does not trust.
    """
    route = study.route
    assert route is not None
    trusted.refuse_others(study)
    if not invitation:
        raise RefusedError(say("device.sum_uninvited", study=study.id))
    vector = _noisy_vector(mechanisms, quantise_answers(study, mechanisms, answers), random)
    secret = read(random, SECRET_BYTES)
    report = Report(report_id_of(secret), study.id, study.version, study.digest, {}, 0, secret)
    messages = []
    for index, share in enumerate(split(vector, len(route.nodes), route.expansion, random)):
        node = route.nodes[index]
        body = sealer(node.sealing_key, context(study.digest, report.id, index), share)
        shown = node_invitation(invitation, index)
        messages.append(Message(node.url, share_path(study.id, report.id), body, shown))
    return report, messages


def _noisy_vector(
    mechanisms: "dict[str, SummedMechanism]", quantised: "list[tuple[str, Any]]", random: "Source"
) -> bytes:
    return b"".join([mechanisms[name].noisy_vector(value, random) for name, value in quantised])
