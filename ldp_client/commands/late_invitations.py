"""An invitation given to a study that was answered from here before: whose it is, no ledger knows.

On a shared machine it may be another person's than the report that waits. So one that waits with its own
keeps it, until somebody says that both are the same person's.
"""

import sys

from ldp_client.device.channels import Channels
from ldp_client.device.outbox import pending
from ldp_client.words.text import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.device import Device
    from ldp_client.device.outbox import Queued


def give_uninvited(device: "Device", study_id: str, invitation: str) -> bool:
    """Give the invitation to a report that waits without any, and say so; whether a report has it now.

    Raises LdpkitError as `Device.invite` does.
    """
    waiting = _waiting(device, study_id)
    if any([report.invitation == invitation for report in waiting]):
        return True
    without = [report for report in waiting if not report.invitation]
    if not without:
        return False
    print(say("cli.invitation_goes", report=_latest(without).report_id), file=sys.stderr)
    device.invite(study_id, invitation)
    return True


def give_instead(device: "Device", study_id: str, invitation: str, asks: bool) -> bool:
    """Give it to a report that waits with another one, where somebody says so; whether it was given.

    asks: whether anybody may be asked. Raises LdpkitError as `Device.invite` does.
    """
    waiting = _waiting(device, study_id)
    if not waiting:
        print(say("cli.invitation_spare", study=study_id), file=sys.stderr)
        return False
    report = _latest(waiting).report_id
    if not asks or not sys.stdin.isatty():
        print(say("cli.invitation_unused", report=report), file=sys.stderr)
        return False
    try:
        said = input(say("cli.invitation_instead", report=report))
    except EOFError:
        said = ""
    if said.strip().lower() not in ("y", "yes"):
        return False
    device.invite(study_id, invitation)
    return True


def _waiting(device: "Device", study_id: str) -> "list[Queued]":
    """The study's reports for this collector that an invitation is for still: those without a token."""
    with device.ledger.reading() as connection:
        channels, reports = Channels(connection), pending(connection)
    here = [one for one in reports if one.study == study_id and device.collector in one.collector.split(" ")]
    return [report for report in here if not channels.token(report)]


def _latest(reports: "list[Queued]") -> "Queued":
    """The one that `Device.invite` takes."""
    return max(reports, key=lambda report: report.version)
