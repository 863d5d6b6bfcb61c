"""From a device's vector to what it sends: one sealed share for each node, under one report id."""

from ldp_client.core.randomness import urandom
from ldp_client.secure_sum.sealing import context, seal
from ldp_client.secure_sum.splitting import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source
    from ldp_client.secure_sum.sealing import Seal
    from schemas.report import Report
    from schemas.study import Study


def share_path(study_id: str, report_id: str) -> str:
    """Where a node takes a report's share."""
    return f"/v1/studies/{study_id}/shares/{report_id}"


class Message:
    """node: base URL; path: where it takes the share. body: the sealed share, the same at every retry."""

    def __init__(self, node: str, path: str, body: bytes) -> None:
        self.node = node
        self.path = path
        self.body = body


def share_messages(
    study: "Study", report: "Report", random: "Source" = urandom, sealer: "Seal" = seal
) -> "list[Message]":
    """One message for each node of the study's route. The report itself must never be sent or kept."""
    route = study.route
    assert route is not None
    vector = b"".join([report.payloads[question.id] for question in study.questions])
    path = share_path(study.id, report.id)
    messages = []
    for index, share in enumerate(split(vector, len(route.nodes), route.expansion, random)):
        node = route.nodes[index]
        body = sealer(node.sealing_key, context(study.digest, report.id, index), share)
        messages.append(Message(node.url, path, body))
    return messages
