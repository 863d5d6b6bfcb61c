"""What engines and stores need beside ldpkit itself: the extra that has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ldp_client.documents.errors import MissingExtraError

# Of each engine, and of reports read one by one, "".
ENGINES = {"": "tables", "local": "tables", "dask": "dask", "spark": "spark"}
# Of each store's addresses.
STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
_LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
_OWN = ("collector", "inference", "ldp_client", "ldpkit", "schemas", "summaries")


@contextmanager
def naming_extra(engine: str | None) -> Iterator[None]:
    """Raises MissingExtraError, with the engine's extra, for a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").split(".")[0]
        if not module or module in _OWN:
            raise
        raise MissingExtraError(ENGINES[engine or ""], module) from None


def missing_library(protocol: str) -> MissingExtraError | None:
    """What to say of a store whose library is not installed; None where it is, and for other places."""
    extra = STORES.get(protocol)
    if extra is None or _is_installed(_LIBRARIES[extra]):
        return None
    return MissingExtraError(extra, _LIBRARIES[extra])


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # A program keeps it out: `sys.modules[module] = None`.
        return False
