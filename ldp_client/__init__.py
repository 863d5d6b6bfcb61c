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
    "ldp_client.device.device": ("Device",),
    "ldp_client.device.transport": ("Direct", "Oblivious", "Transport"),
    "ldp_client.documents.report": ("Report",),
    "ldp_client.documents.study": ("Study",),
    "ldp_client.explain": ("describe",),
    "ldp_client.mechanisms": ("Mechanism", "Privacy", "mechanism_for", "mechanisms_of"),
}


def __getattr__(name: str) -> "object":
    for module, names in _HOMES.items():
        if name in names:
            found: object = getattr(__import__(module, None, None, (name,)), name)
            return found
    raise AttributeError(name)
