"""Tickets as links and QR codes, in the only files that have them."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from ldp_client.documents.errors import InputError
from ldpkit.cli.people import NAME, Person
from schemas.disk import STREAM, standard_output

Write = Callable[[Sequence[Person], Sequence[str]], None]
# Only their owner may read the files.
_open = partial(os.open, mode=0o600)


@contextmanager
def new_links(path: str, pictures: str | None, link: str, head: Sequence[str]) -> Iterator[Write]:
    """Yield a function that writes people and their tickets to a new file, and the tickets as pictures.

    A file or folder that is still empty at the end is removed. Only their owner may read them.

    Args:
        path: the file; - is standard output. Names in `head` make it CSV, as the ending .csv does.
        pictures: the new folder of the pictures; None for none.
        link: the part of the link before the ticket; "" writes tickets without links.
        head: the first columns: a number, or a name and public values.

    Raises:
        InputError: something cannot be written.
    """
    with ExitStack() as stack:
        # 1. Make folder and file before tickets exist that only they will have.
        if pictures:
            with _naming(pictures):
                os.mkdir(pictures, 0o700)
            stack.callback(_remove_empty_folder, pictures)
        if path == STREAM:
            file = standard_output()
        else:
            with _naming(path):
                file = open(path, "x", newline="", encoding="utf-8", opener=_open)  # noqa: SIM115
            stack.callback(_remove_empty_file, path)
            stack.callback(file.close)
        rows = csv.writer(file, lineterminator="\n") if path.endswith(".csv") or NAME in head else None
        count = 0

        # 2. Write each person's line, then the pictures: a failed picture loses no ticket.
        def write(people: Sequence[Person], tickets: Sequence[str]) -> None:
            nonlocal count
            with _naming(path):
                if rows and not count:
                    rows.writerow([*head, "ticket", *(["link"] if link else [])])
                for number, (person, ticket) in enumerate(zip(people, tickets, strict=True), count + 1):
                    if rows:
                        label = [person.name, *person.public.values()] if person.name else [number]
                        rows.writerow([*label, ticket, *([link + ticket] if link else [])])
                    else:
                        print(link + ticket, file=file)
                file.flush()
                if path != STREAM:
                    os.fsync(file.fileno())
            for number, ticket in enumerate(tickets, count + 1) if pictures else ():
                draw(link + ticket, os.path.join(str(pictures), f"ticket-{number:05}.svg"))
            count += len(tickets)

        yield write


def _remove_empty_folder(path: str) -> None:
    with suppress(OSError):
        os.rmdir(path)


def _remove_empty_file(path: str) -> None:
    if not os.path.getsize(path):
        os.unlink(path)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Turn an OSError into an InputError that names the file."""
    try:
        yield
    except OSError as error:
        name = "standard output" if path == STREAM else path
        raise InputError(f"cannot write {name}: {error.strerror}", code="files.cannot_write") from None


def draw(link: str, path: str) -> None:
    """Draw a link as a QR code on white, because a dark page would hide it."""
    import segno

    with _naming(path), open(path, "xb", opener=_open) as file:
        segno.make_qr(link, error="m").save(file, kind="svg", scale=4, light="white")
