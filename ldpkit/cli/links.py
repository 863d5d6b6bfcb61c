"""Tickets as links and QR codes, in the only files that have them; disk space is reserved first."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import STREAM, standard_output

OWNER_ONLY = 0o600
FOLDER_OF_OWNER = 0o700
MOST = 1_000_000
# Fills a file until its lines are written.
PIECE = b"\n" * (1 << 16)
# Characters of a ticket, and at most of its number and the separators.
CHARACTERS, MORE = 22, 12


def room_for(link: str, count: int, path: str) -> int:
    """Return an upper limit on the bytes of so many lines. link: see `writer`."""
    line = len(link.encode()) + CHARACTERS + MORE
    return count * (line + CHARACTERS if path.endswith(".csv") else line)


@contextmanager
def new_place(path: str | None, folder: str | None, room: int = 0) -> Iterator[IO[str]]:
    """Make a new file (or use standard output) and a new folder; remove each if it is still empty at the end.

    Only their owner may read them. Raises InputError.

    room: bytes to reserve for the file on its disk, before the tickets exist that only the file will
    have.
    """
    if folder:
        _new_folder(folder)
    try:
        if path is None or path == STREAM:
            yield standard_output()
        else:
            with _new_file(path, room) as file:
                yield file
    finally:
        if folder and not os.listdir(folder):
            os.rmdir(folder)


@contextmanager
def _new_file(path: str, room: int) -> Iterator[IO[str]]:
    with saying(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    file = os.fdopen(handle, "w", newline="")
    try:
        with saying(path):
            _fill(handle, room)
        yield file
    finally:
        written = os.lseek(handle, 0, os.SEEK_CUR)
        if written:
            os.ftruncate(handle, written)
        else:
            os.unlink(path)
        # If flushing fails here, it has failed before, and that error was reported.
        with suppress(OSError):
            file.close()


@contextmanager
def saying(path: str) -> Iterator[None]:
    """Turn an OSError into an InputError that names the file. A broken pipe is passed on unchanged."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", code="files.not_writable") from None


def _fill(handle: int, room: int) -> None:
    """Reserve disk space for a file. Raises OSError."""
    try:
        while room > 0:
            room -= os.write(handle, PIECE[:room])
        os.fsync(handle)
    finally:
        os.lseek(handle, 0, os.SEEK_SET)


def _new_folder(path: str) -> None:
    try:
        os.mkdir(path, FOLDER_OF_OWNER)
    except OSError as error:
        raise InputError(f"cannot make {path}: {error.strerror}", code="files.folder_not_made") from None


def writer(file: IO[str], path: str, pictures: str | None, link: str) -> Callable[[list[str]], None]:
    """Return a function that writes tickets to a file and as pictures. link: the part before the word."""
    rows = csv.writer(file, lineterminator="\n") if path.endswith(".csv") else None
    numbers: Iterator[int] = iter(range(1, MOST + 1))

    def write(tickets: list[str]) -> None:
        numbered = [(number, ticket) for ticket, number in zip(tickets, numbers)]
        with saying(path or "standard output"):
            if rows and numbered[0][0] == 1:
                rows.writerow(["number", "ticket", "link"])
            for number, ticket in numbered:
                if rows:
                    rows.writerow([number, ticket, link + ticket])
                else:
                    print(link + ticket, file=file)
            file.flush()
            if path not in ("", STREAM):
                os.fsync(file.fileno())
        # The line is written first, so that a failed picture loses no ticket.
        for number, ticket in numbered if pictures else ():
            _draw(link + ticket, os.path.join(str(pictures), f"ticket-{number:05}.svg"))

    return write


def _draw(link: str, path: str) -> None:
    """Draw a link as a QR code on white, because a dark page would hide it."""
    import segno

    with (
        saying(path),
        open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "wb") as file,
    ):
        segno.make_qr(link, error="m").save(file, kind="svg", scale=4, light="white")
