"""Tickets as links and QR codes, in the only files that have them; disk space is reserved first."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from ldp_client.documents.errors import InputError
from ldpkit.cli.people import NAME, Person
from schemas.disk import STREAM, standard_output

OWNER_ONLY = 0o600
FOLDER_OF_OWNER = 0o700
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# Fills a file until its lines are written.
PIECE = b"\n" * (1 << 16)
# Characters of a ticket, and at most of its number and the separators.
CHARACTERS, MORE = 22, 12


def room_for(link: str, head: Sequence[str], people: Sequence[Person]) -> int:
    """Return an upper limit on the bytes of the lines of these people. See `writer`."""
    width = len(link.encode()) + 2 * CHARACTERS + MORE
    labels = [head, *([person.name, *person.public.values()] for person in people)]
    # Quoting doubles at most, and adds two.
    return sum(width + sum(2 * len(part.encode()) + 3 for part in label) for label in labels)


@contextmanager
def new_place(path: str | None, folder: str | None, room: int = 0) -> Iterator[IO[str]]:
    """Make a new file (or use standard output) and a new folder; remove each if it is still empty at the end.

    Only their owner may read them. Raises InputError.

    room: bytes to reserve for the file on its disk, before tickets exist that only the file will have.
    """
    try:
        if folder:
            os.mkdir(folder, FOLDER_OF_OWNER)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}", code="files.folder_not_made") from None
    try:
        if path is None or path == STREAM:
            yield standard_output()
        else:
            with naming(path):
                file = os.fdopen(os.open(path, NEW_FILE, OWNER_ONLY), "w", newline="", encoding="utf-8")
            try:
                with file:
                    try:
                        with naming(path):
                            _reserve(file.fileno(), room)
                        yield file
                    finally:
                        file.truncate()
            finally:
                if not os.path.getsize(path):
                    os.unlink(path)
    finally:
        if folder and not os.listdir(folder):
            os.rmdir(folder)


def _reserve(handle: int, room: int) -> None:
    """Reserve disk space for a file. Raises OSError."""
    try:
        while room > 0:
            room -= os.write(handle, PIECE[:room])
        os.fsync(handle)
    finally:
        os.lseek(handle, 0, os.SEEK_SET)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn an OSError into an InputError that names the file. A broken pipe is passed on unchanged."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", code="files.not_writable") from None


def writer(
    file: IO[str], path: str, pictures: str | None, link: str, head: Sequence[str]
) -> Callable[[Sequence[Person], Sequence[str]], None]:
    """Return a function that writes people and their tickets to a file, and the tickets as pictures.

    Args:
        file: the file.
        path: its name. Names in `head` make it CSV, as the ending .csv does.
        pictures: the folder of the pictures.
        link: the part of the link before the ticket; "" writes tickets without links.
        head: the first columns: a number, or a name and public values.
    """
    rows = csv.writer(file, lineterminator="\n") if path.endswith(".csv") or NAME in head else None
    count = 0

    def write(people: Sequence[Person], tickets: Sequence[str]) -> None:
        nonlocal count
        with naming(path or "standard output"):
            if rows and not count:
                rows.writerow([*head, "ticket", *(["link"] if link else [])])
            for number, (person, ticket) in enumerate(zip(people, tickets, strict=True), count + 1):
                if rows:
                    label = [person.name, *person.public.values()] if person.name else [number]
                    rows.writerow([*label, ticket, *([link + ticket] if link else [])])
                else:
                    print(link + ticket, file=file)
            file.flush()
            if path not in ("", STREAM):
                os.fsync(file.fileno())
        # The line is written first, so that a failed picture loses no ticket.
        for number, ticket in enumerate(tickets, count + 1) if pictures else ():
            draw(link + ticket, os.path.join(str(pictures), f"ticket-{number:05}.svg"))
        count += len(tickets)

    return write


def draw(link: str, path: str) -> None:
    """Draw a link as a QR code on white, because a dark page would hide it."""
    import segno

    with naming(path), open(os.open(path, NEW_FILE, OWNER_ONLY), "wb") as file:
        segno.make_qr(link, error="m").save(file, kind="svg", scale=4, light="white")
