"""Storage for a dataset: a folder, or an object store's address that fsspec knows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ldp_client.documents.errors import InputError, LdpkitError, MissingExtraError, TransferError, UsageError
from ldp_client.files.disk import replacing
from summaries.engines.addresses import DISKS, line_of
from summaries.extras import STORES, missing_library

PIECE = 1 << 20
# A store receives longer files in several parts, and shows them when the last part has arrived.
ONE_PUT = 32 << 20


def trimmed(address: str) -> str:
    """Return an address without slashes at its end. Raises InputError if it is empty, or a protocol alone."""
    if not address.strip():
        raise InputError(
            "the address is empty: name a folder, or a place such as s3://bucket/studies",
            code="export.empty_address",
        )
    found = address.rstrip("/")
    if "://" in address and "://" not in found:
        raise InputError(
            f"{address} is not a place that files can be written to", code="export.address_not_writable"
        )
    return found or "/"


class Store:
    """Files below an address. Each becomes visible whole or not at all.

    Raises UsageError for an address with a password, MissingExtraError if its library is not installed, and
    InputError for an address that no library reads. Its methods raise InputError for errors of a disk, and
    TransferError for errors of a store.
    """

    def __init__(self, address: str) -> None:
        self.address = trimmed(address)
        self._fs, self._root = _filesystem(self.address)
        protocols = self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        self.is_local = "file" in protocols

    def shown(self, path: str) -> str:
        """Return a file's address, for messages."""
        return f"{self.address}/{path}"

    def write(self, path: str, content: bytes | IO[bytes], size: int | None = None) -> None:
        """Write a new file. size: an open file's length."""
        with self._saying("write", path):
            if self.is_local:
                return self._write_local(path, content)
            if isinstance(content, bytes) or (size is not None and size <= ONE_PUT):
                self._fs.pipe_file(self._at(path), content if isinstance(content, bytes) else content.read())
                return None
            target = self._fs.open(self._at(path), "wb", block_size=ONE_PUT)
            try:
                shutil.copyfileobj(content, target, PIECE)
            except BaseException:
                # Closing would publish the partial file as if it were complete.
                target.discard()
                raise
            target.close()
        return None

    def remove(self, path: str) -> None:
        """Delete a file, if there is one."""
        with self._saying("delete", path):
            try:
                self._fs.rm_file(self._at(path))
            except FileNotFoundError:
                return

    def remove_empty(self, folder: str) -> None:
        """Delete a disk's empty folders from here down.

        Nearly all stores have no folders. Empty folders of a store with hierarchical namespaces stay.
        """
        if self.is_local:
            for top, _folders, _files in os.walk(self._at(folder), topdown=False):
                with suppress(OSError):
                    os.rmdir(top)

    def begin(self, folder: str) -> None:
        """Make a disk's folder, which only one export does. Raises InputError if it exists."""
        if self.is_local:
            with self._saying("write", folder):
                Path(self._at("")).mkdir(parents=True, exist_ok=True)
                Path(self._at(folder)).mkdir()

    def paths(self, folder: str) -> list[str]:
        """Return every file below a folder, relative to it, in order."""
        with self._saying("list", folder):
            self._fs.invalidate_cache()
            top = self._fs._strip_protocol(self._at(folder)).rstrip("/") + "/"
            return sorted(path.removeprefix(top) for path in self._fs.find(top))

    def settle(self, folder: str) -> None:
        """Flush the names of the files written in a folder to disk, so that they survive a crash."""
        if not self.is_local:
            return
        with self._saying("write", folder):
            for top, _folders, _files in os.walk(self._at(folder)):
                _flush(top)
            for above in (Path(self._at(folder)).parent, Path(self._root).parent):
                _flush(above)

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"

    def _write_local(self, path: str, content: bytes | IO[bytes]) -> None:
        place = Path(self._at(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(str(place), private=True) as file:
            if isinstance(content, bytes):
                file.buffer.write(content)
            else:
                shutil.copyfileobj(content, file.buffer, PIECE)

    @contextmanager
    def _saying(self, what: str, path: str) -> Iterator[None]:
        """Turn errors into one line: each store's library raises its own kinds."""
        try:
            yield
        except LdpkitError:
            raise
        except Exception as error:
            kind = InputError if self.is_local else TransferError
            raise kind(f"cannot {what} {self.shown(path)}: {line_of(error)}") from None


def _flush(folder: str | Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest_of(file: IO[bytes]) -> tuple[int, str]:
    """Return an open file's length and SHA-256, and rewind the file."""
    file.seek(0)
    hashed, size = sha256(), 0
    while piece := file.read(PIECE):
        hashed.update(piece)
        size += len(piece)
    file.seek(0)
    return size, hashed.hexdigest()


def _filesystem(address: str) -> tuple[Any, str]:
    protocol = address.partition("://")[0] if "://" in address else "file"
    if "://" in address and _has_password(address):
        advice = "set it in the environment, as the store's own programs read it"
        raise UsageError(
            f"an address must not hold a password, which would be written down: {advice}",
            code="export.password_in_address",
        )
    # Accept only protocols that keep written files: fsspec also reads memory, caches and more.
    if protocol not in (*DISKS, *STORES) or "::" in address:
        what = "::" if "::" in address else f"{protocol}://"
        known = "a folder, s3://…, gs://…, az://…"
        raise InputError(
            f"{address}: cannot write files to {what}; name {known}", code="export.unknown_store"
        )
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("collector", "fsspec") from None
    try:
        filesystem, root = url_to_fs(address)
    except (ImportError, ValueError) as error:
        # Some protocols are unknown without their library.
        if missing := missing_library(protocol, error):
            raise missing from None
        raise _not_an_address(address, error) from None
    return filesystem, str(root)


def _has_password(address: str) -> bool:
    try:
        return urlsplit(address).password is not None
    except ValueError as error:
        raise _not_an_address(address, error) from None


def _not_an_address(address: str, error: Exception) -> InputError:
    return InputError(f"{address} is no address: {line_of(error)}", code="export.wrong_address")
