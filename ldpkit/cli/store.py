"""The place of a dataset: a folder, or an object store's address that fsspec knows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ldp_client.documents.errors import InputError, LdpkitError, MissingExtraError, TransferError, UsageError
from summaries.engines.stores import DISKS, STORES, line_of, missing_library

# A store receives longer files in several parts, and shows them when the last part has arrived.
ONE_PUT = 32 << 20


class Store:
    """Files below an address.

    Raises UsageError for an address with a password, MissingExtraError if its library is not installed, and
    InputError for an address that no library writes to. Its methods raise InputError for errors of a disk,
    and TransferError for errors of a store.
    """

    def __init__(self, address: str) -> None:
        self._fs, self._root = _filesystem(address)
        self.address = address.rstrip("/")
        protocols = self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        self.is_local = "file" in protocols

    def write(self, path: str, content: bytes | IO[bytes]) -> None:
        """Write a new file; on a disk only its owner may read it."""
        with self._one_line("write", path):
            if self.is_local:
                file = Path(self._at(path))
                file.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                target = os.fdopen(handle, "wb")
            else:
                target = self._fs.open(self._at(path), "wb", block_size=ONE_PUT)
            with target:
                shutil.copyfileobj(BytesIO(content) if isinstance(content, bytes) else content, target)
                if self.is_local:
                    target.flush()
                    os.fsync(handle)

    def begin(self, folder: str) -> None:
        """Make a disk's folder, which only one export does. Raises InputError if it exists."""
        if self.is_local:
            with self._one_line("write", folder):
                Path(self._at("")).mkdir(parents=True, exist_ok=True)
                Path(self._at(folder)).mkdir()

    def remove(self, folder: str) -> None:
        """Delete a folder and all that it has."""
        with self._one_line("delete", folder):
            self._fs.rm(self._at(folder), recursive=True)

    def paths(self, folder: str) -> list[str]:
        """Return every file below a folder, relative to it, in order."""
        with self._one_line("list", folder):
            self._fs.invalidate_cache()
            top = self._fs._strip_protocol(self._at(folder)).rstrip("/") + "/"
            return sorted(path.removeprefix(top) for path in self._fs.find(top))

    def settle(self, folder: str) -> None:
        """Flush the names of the files in a folder to disk, so that they survive a crash."""
        if not self.is_local:
            return
        with self._one_line("write", folder):
            top = Path(self._at(folder))
            for path in (top.parent.parent, top.parent, top, *filter(Path.is_dir, top.rglob("*"))):
                handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"

    @contextmanager
    def _one_line(self, what: str, path: str) -> Iterator[None]:
        """Turn errors into one line: each store's library raises its own kinds."""
        try:
            yield
        except LdpkitError:
            raise
        except Exception as error:
            kind = InputError if self.is_local else TransferError
            raise kind(f"cannot {what} {self.address}/{path}: {line_of(error)}") from None


def digest_of(file: IO[bytes]) -> tuple[int, str]:
    """Return an open file's length and SHA-256, and rewind the file."""
    file.seek(0)
    digest = file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    size = file.tell()
    file.seek(0)
    return size, digest


def _filesystem(address: str) -> tuple[Any, str]:
    wrong = InputError(
        f"cannot write files to '{address}': name a folder, or a place such as s3://bucket/studies",
        code="export.unknown_store",
    )
    try:
        parts = urlsplit(address if "://" in address else f"file://{address}")
    except ValueError:
        raise wrong from None
    if parts.password is not None:
        raise UsageError(
            "an address must not hold a password, which would be written down: set it in the environment, "
            "as the store's own programs read it",
            code="export.password_in_address",
        )
    # Accept only protocols that keep written files: fsspec also reads memory, caches and more.
    if parts.scheme not in (*DISKS, *STORES) or "::" in address or not (parts.netloc + parts.path).strip():
        raise wrong
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("collector", "fsspec") from None
    try:
        filesystem, root = url_to_fs(address)
    except (ImportError, ValueError) as error:
        # Some protocols are unknown without their library.
        raise missing_library(parts.scheme, error) or wrong from None
    return filesystem, str(root)
