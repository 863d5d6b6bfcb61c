"""The extras of ldpkit that have the packages for tables and stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ldp_client.documents.errors import MissingExtraError
from ldp_client.files.lacking import lacking

# The extra for each protocol of a store's addresses.
STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
_LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}


@contextmanager
def naming_extra() -> Iterator[None]:
    """Raise MissingExtraError, which names the extra `tables`, for a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = lacking(error, "tables")
        if missing is None:
            raise
        raise missing from None


def missing_library(protocol: str, error: Exception) -> MissingExtraError | None:
    """Return the error for a store whose library is missing or incomplete; None for other errors.

    error: what opening it raised.
    """
    extra = STORES.get(protocol)
    if extra is None:
        return None
    if not _is_installed(_LIBRARIES[extra]):
        return MissingExtraError(extra, _LIBRARIES[extra])
    # fsspec wraps the library's error in another one.
    cause = error.__cause__ or error
    if not isinstance(cause, ImportError):
        return None
    return MissingExtraError(extra, (cause.name or _LIBRARIES[extra]).split(".")[0])


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # A program blocks its import: `sys.modules[module] = None`.
        return False
