"""What to say of a module that is not there: which extra has it; a lost file of ldpkit's own has none."""

from ldp_client.documents.errors import MissingExtraError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

OWN = ("collector", "inference", "ldp_client", "ldpkit", "schemas", "summaries")


def top_of(error: ModuleNotFoundError) -> str:
    """The package that was not found; "" where the error names none."""
    return (error.name or "").split(".")[0]


def lacking(error: ModuleNotFoundError, extra: str) -> "Optional[MissingExtraError]":
    """What to install, of the extra that the caller needs; None for what no extra has.

    A module of ldpkit's own is missing by a fault of ldpkit, or of how it was installed.
    """
    module = top_of(error)
    return None if not module or module in OWN else MissingExtraError(extra, module)
