"""Whose study it is: any collector can publish a study under the id of another's.

The publisher is who signs with the pinned keys, else the collector, by its base URL: its identity is no
proof, as whoever asks for it can repeat it. A row of the ledger without a publisher, of an older ledger or of
a device without a collector, is taken for anybody's, and so is a study without one.

What this decides: which versions were seen, what a person agreed to, which permanent answer is repeated, what
an invitation is for and what is withdrawn is each publisher's own. A question is asked once by each, and is
paid for each time; in the same words it is asked once by all of them, so that a collector that comes back
under another name is not answered again.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Which rows are about a publisher's study of some id: for the values that `Publisher.of` gives.
OF_PUBLISHER = "study = ? AND (INSTR(?, char(10) || publisher || char(10)) OR ?)"


class Publisher:
    """The publisher of a study.

    name: what rows of the ledger are kept under, "" if it is not known. names: which rows are its own.
    """

    def __init__(self, name: str, also: "Sequence[str]" = ()) -> None:
        self.name = name
        self.names = {"", name, *also}

    def of(self, study_id: str) -> "tuple[str, str, bool]":
        """The values of OF_PUBLISHER."""
        return study_id, "\n{}\n".format("\n".join(sorted(self.names))), self.names == {""}

    def is_own(self, name: str) -> bool:
        """Whether a row that is kept under this name is about its study."""
        return name in self.names or self.names == {""}
