"""On the device: noise, the one-shot ledger, the outbox. Standard library only."""

from ldp_client.mechanisms import Mechanism, Privacy, mechanism_for, mechanisms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.describing import describe
    from ldp_client.device.device import Device
    from ldp_client.documents.report import Report
    from ldp_client.documents.study import Study

__all__ = [
    "Device",
    "Mechanism",
    "Privacy",
    "Report",
    "Study",
    "describe",
    "mechanism_for",
    "mechanisms_of",
]


def __getattr__(name: str) -> "object":
    """Load a name on first use: mechanisms alone need neither SQLite nor HTTP."""
    if name == "Device":
        from ldp_client.device.device import Device as found
    elif name == "describe":
        from ldp_client.describing import describe as found
    elif name == "Report":
        from ldp_client.documents.report import Report as found
    elif name == "Study":
        from ldp_client.documents.study import Study as found
    else:
        raise AttributeError(name)
    return found
