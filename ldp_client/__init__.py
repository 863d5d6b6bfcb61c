"""On the device: noise, the one-shot ledger, the outbox. Standard library only."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.device import Device
    from ldp_client.device.transport import Direct, Oblivious, Transport
    from ldp_client.documents.report import Report
    from ldp_client.documents.study import Study
    from ldp_client.explain import describe
    from ldp_client.mechanisms import Mechanism, Privacy, mechanism_for, mechanisms_of

__all__ = [
    "Device",
    "Direct",
    "Mechanism",
    "Oblivious",
    "Privacy",
    "Report",
    "Study",
    "Transport",
    "describe",
    "mechanism_for",
    "mechanisms_of",
]


# Loaded on first use, so that a program loads only what it needs.
_HOMES = {
    "Device": "ldp_client.device.device",
    "Direct": "ldp_client.device.transport",
    "Mechanism": "ldp_client.mechanisms",
    "Oblivious": "ldp_client.device.transport",
    "Privacy": "ldp_client.mechanisms",
    "Report": "ldp_client.documents.report",
    "Study": "ldp_client.documents.study",
    "Transport": "ldp_client.device.transport",
    "describe": "ldp_client.explain",
    "mechanism_for": "ldp_client.mechanisms",
    "mechanisms_of": "ldp_client.mechanisms",
}


def __getattr__(name: str) -> "object":
    if name not in _HOMES:
        raise AttributeError(name)
    found: object = getattr(__import__(_HOMES[name], None, None, (name,)), name)
    return found
