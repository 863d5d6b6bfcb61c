"""On the device: noise, the one-shot ledger, the outbox. Standard library only."""

from ldp_client.mechanisms import Mechanism, Privacy, mechanism_for, mechanisms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.device import Device

__all__ = ["Device", "Mechanism", "Privacy", "mechanism_for", "mechanisms_of"]


def __getattr__(name: str) -> "type[Device]":
    """Load Device on first use: mechanisms alone need neither SQLite nor HTTP."""
    if name == "Device":
        from ldp_client.device.device import Device

        return Device
    raise AttributeError(name)
