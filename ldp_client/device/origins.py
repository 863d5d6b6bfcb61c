"""Whose study a row of the ledger is about: the collector's origin, which is its scheme, host and port.

The path does not count: one operator is one collector. Any collector can publish a study under the id of
another collector's study; each origin's studies have separate versions, consents, answers and withdrawals.
Only the owner's app states that a collector moved. A server never does.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def origin_of(base_url: str) -> str:
    """Return the origin of a base URL in the spelling of `Policy.base_url`; "" for no collector."""
    return "/".join(base_url.split("/")[:3])


class Origins:
    """The origins that a device's collector has and had.

    name: the origin of new rows, "" without a collector. Rows without an origin, from a device without a
    collector, count as any collector's, and to a device without a collector all rows count as its own: its
    reports go to the first collector that it names.
    """

    def __init__(self, name: str = "", formerly: "Iterable[str]" = ()) -> None:
        self.name = name
        self._names = {"", name, *formerly}

    def own(self, origin: str) -> bool:
        """Return True if rows of this origin are about this collector's studies."""
        return not self.name or origin in self._names
