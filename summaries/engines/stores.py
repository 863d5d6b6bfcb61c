"""Files on a disk, or in a store that fsspec opens, whose library's errors are reduced to one line here."""

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

from ldp_client.documents.errors import InputError, LdpkitError, MissingExtraError, TransferError

# Prefixes of the path of a file on a disk, for fsspec.
DISKS = ("file", "local")
# The extra for each protocol of a store's addresses.
STORES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
LONGEST_LINE = 500


def is_in_store(path: str) -> bool:
    """Return True if fsspec opens it."""
    return "://" in path


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file; of a store's file a temporary copy, so that errors of its content are not the store's.

    Raises OSError for a disk, FileNotFoundError also for a store, and TransferError for a store's other
    errors.
    """
    if not is_in_store(path):
        with open(path, "rb") as file:
            yield file
        return
    with TemporaryFile() as copy:
        with streamed(path) as source:
            shutil.copyfileobj(source, copy)
        copy.seek(0)
        yield copy


@contextmanager
def streamed(path: str) -> Iterator[IO[bytes]]:
    """Open a file, or an address of a store, of which only what is asked for is fetched.

    Raises as `opened` does; an InputError may also come from the file's content.
    """
    if not is_in_store(path):
        with open(path, "rb") as file:
            yield file
        return
    with _store_errors(path):
        store, inside = store_of(path)
        with store.open(inside, "rb") as file:
            yield file


def matching(path: str) -> list[str]:
    """Return the files that a path or an address means, which may have wildcards, in order.

    Raises InputError if there are none, and TransferError for the store's errors.
    """
    if not set("*?[") & set(path):
        return [path]
    if is_in_store(path):
        with _store_errors(path):
            store, inside = store_of(path)
            names = [store.unstrip_protocol(name) for name in sorted(store.glob(inside))]
    else:
        names = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not names:
        raise InputError(f"no file matches {path}", code="merge.no_file")
    return names


def below(folder: str) -> list[str]:
    """Return the paths of all files below a folder now, relative to it.

    Raises TransferError for a store's errors.
    """
    if not is_in_store(folder):
        return glob.glob("**/*", root_dir=folder, recursive=True)
    with _store_errors(folder):
        store, inside = store_of(folder)
        top = inside.rstrip("/") + "/"
        return [path.removeprefix(top) for path in store.find(top)]


def store_of(address: str) -> tuple[Any, str]:
    """Return a store and a path in it. Stores' libraries cache listings, which miss files that are newer."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("tables", "fsspec") from None
    try:
        store, inside = url_to_fs(address)
    except (ImportError, ValueError) as error:
        # Without their library some protocols are unknown; fsspec wraps the error of an incomplete library.
        extra, cause = STORES.get(address.partition("://")[0]), error.__cause__ or error
        is_missing = isinstance(cause, ImportError) or str(cause).startswith("Protocol not known")
        if extra is None or not is_missing:
            raise
        raise MissingExtraError(extra, (getattr(cause, "name", None) or extra).split(".")[0]) from None
    store.invalidate_cache()
    return store, inside


@contextmanager
def _store_errors(path: str) -> Iterator[None]:
    """Raise a store's errors as TransferError, in one line; FileNotFoundError passes unchanged."""
    try:
        yield
    except (FileNotFoundError, LdpkitError):
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
    message = " ".join(str(getattr(error, "strerror", None) or error).split())
    return message[:LONGEST_LINE] or type(error).__name__
