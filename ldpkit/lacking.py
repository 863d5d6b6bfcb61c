"""The error for a missing module: it names the extra to install. ldpkit's own files belong to no extra."""

from ldp_client.documents.errors import MissingExtraError

OWN = ("collector", "inference", "ldp_client", "ldpkit", "schemas", "summaries")


def top_of(error: ModuleNotFoundError) -> str:
    """Return the name of the package that was not found; "" if the error names none."""
    return (error.name or "").split(".")[0]


def lacking(error: ModuleNotFoundError, extra: str) -> MissingExtraError | None:
    """Return the error that names the caller's extra; None for a module that no extra contains.

    A module of ldpkit itself is missing because of a bug in ldpkit, or a broken installation.
    """
    module = top_of(error)
    return None if not module or module in OWN else MissingExtraError(extra, module)
