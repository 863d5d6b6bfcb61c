"""Sending the shares of a report to their nodes, and asking the nodes to delete them."""

import json
from binascii import a2b_base64

from ldp_client.device.upload import Outcome, delete_report, put_share
from ldp_client.secure_sum.messages import node_invitation, share_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ldp_client.device.outbox import Queued

    Judge = Callable[[str, Outcome], Outcome]


def put_shares(queued: "Queued", judge: "Judge") -> Outcome:
    """Send every share once: "sent" when every node has its own, "refused" when one refuses for good.

    judge: says of a node, by its base URL, what its answer means.
    """
    shares = [a2b_base64(text) for text in json.loads(queued.body)]

    def put(url: str, index: int) -> Outcome:
        return put_share(url, shares[index], node_invitation(queued.invitation, index))

    return _at_all(queued, put, judge)


def delete_shares(queued: "Queued", judge: "Judge") -> Outcome:
    """Ask every node once to delete its share."""
    return _at_all(queued, lambda url, _index: delete_report(url, queued.secret), judge)


def _at_all(queued: "Queued", ask: "Callable[[str, int], Outcome]", judge: "Judge") -> Outcome:
    """The worst of the nodes' answers: each is asked, whatever the others say."""
    path = share_path(queued.study, queued.report_id)
    outcomes = [judge(node, ask(node + path, index)) for index, node in enumerate(queued.nodes)]
    for state in ("refused", "waiting", "kept"):
        for outcome in outcomes:
            if outcome.state == state:
                return outcome
    return outcomes[0]
