"""What tables and stores need beside ldpkit itself: the extra that has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ldp_client.documents.errors import MissingExtraError
from ldp_client.files.lacking import lacking

# Of each store's addresses.
STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
_LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}


@contextmanager
def naming_extra() -> Iterator[None]:
    """Raises MissingExtraError, which names the extra `tables`, for a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = lacking(error, "tables")
        if missing is None:
            raise
        raise missing from None


def missing_library(protocol: str, error: Exception) -> MissingExtraError | None:
    """What to say of a store whose library is not installed, or lacks what it needs; None for other errors.

    error: what opening it raised.
    """
    extra = STORES.get(protocol)
    if extra is None:
        return None
    if not _is_installed(_LIBRARIES[extra]):
        return MissingExtraError(extra, _LIBRARIES[extra])
    # fsspec raises an error of its own from the library's.
    cause = error.__cause__ or error
    if not isinstance(cause, ImportError):
        return None
    return MissingExtraError(extra, (cause.name or _LIBRARIES[extra]).split(".")[0])


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # A program keeps it out: `sys.modules[module] = None`.
        return False
