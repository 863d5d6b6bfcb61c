"""Where files are: on a disk, at paths that do not depend on the process's folder; or in a store.

Each store's library raises its own errors; they are all reduced to one line here.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from ldp_client.documents.errors import InputError, LdpkitError, MissingExtraError, TransferError
from summaries.extras import missing_library

# Prefixes of the path of a file on a disk, for fsspec.
DISKS = ("file", "local")
# Servers of these at most tell what a page links to.
UNLISTED = ("http", "https")
# A server's status for a file that it does not have.
ABSENT = (404, 410)
REFUSED = (401, 403)
MOST_SAID = 500


def is_in_store(path: str) -> bool:
    """Return True if fsspec opens it."""
    return "://" in path


def on_disk(path: str) -> str | None:
    """Return the path on a disk that an address has; None for a store's."""
    protocol, mark, rest = path.partition("://")
    if not mark:
        return path
    return rest if protocol in DISKS else None


def whole(path: str) -> str:
    """Return the absolute path: other processes run in other folders. A store's address stays as it is."""
    protocol, mark, rest = path.partition("://")
    if not mark:
        return os.path.abspath(path)
    return f"{protocol}://{os.path.abspath(rest)}" if protocol in DISKS and rest[:1] != "/" else path


class RefusedError(TransferError):
    """A store refuses access to a file, or lacks it and does not admit that to users who may not list."""

    code = "files.store_refused"


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file, or an address that fsspec reads.

    Raises OSError for a disk, FileNotFoundError also for a store, and TransferError for a store's other
    errors.
    """
    if not is_in_store(path):
        with open(path, "rb") as file:
            yield file
        return
    with saying(path):
        store, inside = _store_of(path)
        file = store.open(inside, "rb")
    with file:
        yield cast(IO[bytes], _Stored(path, file))


def matching(pattern: str) -> list[str]:
    """Return the addresses of a store's files that match a pattern now, in order.

    Raises TransferError for the store's errors.
    """
    with saying(pattern):
        store, inside = _store_of(pattern)
        if store.exists(inside):
            # Names may contain such letters themselves.
            return [pattern]
        found = store.glob(inside, detail=True)
        return [store.unstrip_protocol(one) for one in sorted(found) if found[one]["type"] != "directory"]


def below(folder: str) -> list[str]:
    """Return the current paths of all files below a folder, relative to it; none if they cannot be listed.

    A store is asked for all files at once. Raises InputError, and TransferError for a store's errors.
    """
    if not is_in_store(folder):
        return list(_walked(folder))
    if folder.partition("://")[0] in UNLISTED:
        return []
    with saying(folder):
        store, inside = _store_of(folder)
        top = inside.rstrip("/") + "/"
        return [path.removeprefix(top) for path in store.find(top)]


def _walked(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise InputError(f"cannot list {error.filename}: {line_of(error)}", code="files.not_listed")

    for place, folders, names in os.walk(folder, onerror=refuse):
        if links := [name for name in folders if os.path.islink(os.path.join(place, name))]:
            raise InputError(f"{place}/{links[0]} is a link: name its files", code="files.linked_folder")
        inside = "" if place == folder else os.path.relpath(place, folder).replace(os.sep, "/") + "/"
        yield from (inside + name for name in names)


def _store_of(address: str) -> tuple[Any, str]:
    """Return a store and a path in it. Stores' libraries cache listings, which miss files that are newer."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("tables", "fsspec") from None
    try:
        store, inside = url_to_fs(address)
    except (ImportError, ValueError) as error:
        if missing := missing_library(address.partition("://")[0], error):
            raise missing from None
        raise
    store.invalidate_cache()
    return store, inside


class _Stored(io.RawIOBase):
    """A store's file, which separates errors of the store from errors in the file's content."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path, self._file = path, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with saying(self._path):
            return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        with saying(self._path):
            return self._file.read(size)


@contextmanager
def saying(path: str) -> Iterator[None]:
    """Raise a store's errors as TransferError, in one line; FileNotFoundError passes unchanged."""
    try:
        yield
    except FileNotFoundError as error:
        # fsspec raises this error for every status of a web server, also if the file is missing.
        status = getattr(error.__cause__, "status", None)
        if error.__cause__ is None or status in ABSENT:
            raise
        kind = RefusedError if status in REFUSED else TransferError
        raise kind(f"cannot read {path}: {line_of(error.__cause__)}") from None
    except LdpkitError:
        raise
    except (ImportError, ValueError) as error:
        # There is no library for such addresses, or the address is malformed.
        raise InputError(f"cannot read {path}: {line_of(error)}", code="files.not_readable") from None
    except Exception as error:
        raise TransferError(
            f"cannot read {path}: {line_of(error)}", code="files.store_not_readable"
        ) from None


def line_of(error: BaseException) -> str:
    """Return the message of any library's error, in one line."""
    said = " ".join(str(getattr(error, "strerror", None) or error).split())
    return said[:MOST_SAID] or type(error).__name__
