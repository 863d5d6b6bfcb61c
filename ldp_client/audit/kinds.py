"""What kind of report a mechanism makes, where the audit looks at one kind in another way."""

from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.mechanisms.unary import UnaryMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.mechanisms import Mechanism


def is_unary(mechanism: "Mechanism") -> bool:
    """One bit for each choice, independent of the others."""
    return isinstance(mechanism, UnaryMechanism) and not isinstance(mechanism, SubsetSelection)
