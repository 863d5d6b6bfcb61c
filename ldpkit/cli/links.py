"""Tickets as links and QR codes, in the only files that have them; disk space is reserved first."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
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
# The column of people's names.
NAME = "name"


def room_for(link: str, labels: Sequence[Sequence[object]]) -> int:
    """Return an upper limit on the bytes of the lines of these tickets. See `writer`."""
    width = len(link.encode()) + 2 * CHARACTERS + MORE
    return sum(width + 3 * sum(len(str(part).encode()) + 1 for part in label) for label in labels)


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


def writer(
    file: IO[str], path: str, pictures: str | None, link: str, head: Sequence[str]
) -> Callable[[Sequence[Sequence[object]], list[str]], None]:
    """Return a function that writes labels and their tickets to a file, and the tickets as pictures.

    Args:
        file: the file.
        path: its name. Names in `head` make it CSV, as the ending .csv does.
        pictures: the folder of the pictures.
        link: the part of the link before the ticket; "" writes tickets without links.
        head: the columns of the labels: a number, or a name and public values.
    """
    rows = csv.writer(file, lineterminator="\n") if path.endswith(".csv") or NAME in head else None
    count = 0

    def write(labels: Sequence[Sequence[object]], tickets: list[str]) -> None:
        nonlocal count
        first, count = count, count + len(tickets)
        with saying(path or "standard output"):
            if rows and not first:
                rows.writerow([*head, "ticket", *(["link"] if link else [])])
            for label, ticket in zip(labels, tickets, strict=True):
                if rows:
                    rows.writerow([*label, ticket, *([link + ticket] if link else [])])
                else:
                    print(link + ticket, file=file)
            file.flush()
            if path not in ("", STREAM):
                os.fsync(file.fileno())
        # The line is written first, so that a failed picture loses no ticket.
        for number, ticket in enumerate(tickets, first + 1) if pictures else ():
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
