"""Files of an invitation: the list of people to invite, and their tickets as links and QR codes."""

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple

import click

from ldp_client.documents.errors import InputError
from ldp_client.words.text import visible
from schemas.disk import STREAM, standard_output

# Only their owner may read the files.
_open = partial(os.open, mode=0o600)
# The column of people's names, and columns that the list of tickets adds.
NAME, ADDED = "name", ("ticket", "link")


class Person(NamedTuple):
    """A person to invite. name: "" for none. public: the values that the ticket carries, by field."""

    name: str
    public: dict[str, str]


def public_document(public: dict[str, str]) -> list[dict[str, str]]:
    """Return public values as servers take them."""
    return [{"field": field, "value": public[field]} for field in sorted(public)]


def public_of(_ctx: click.Context, _option: click.Parameter, settings: Sequence[str]) -> dict[str, str]:
    """Return the values that --public states, by field."""
    public: dict[str, str] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if not name or not value or name in public:
            raise click.BadParameter(f"{visible(setting[:64])}: must be FIELD=VALUE, once for each field")
        public[name] = value
    return public


public_option = click.option(
    "--public",
    multiple=True,
    metavar="FIELD=VALUE",
    callback=public_of,
    help="the value of a public field that the tickets carry; repeat it",
)


def read_people(path: str) -> list[Person]:
    """Return the people whom a file names. Raises InputError."""
    from collector.issuer.issue import looks
    from ldpkit.answer_files import csv_rows

    rows = csv_rows(path)
    _, columns = next(rows)
    if NAME not in columns or set(ADDED) & set(columns) or len(set(columns)) < len(columns):
        raise InputError(
            f"{path}: must be CSV with a column {NAME!r}, none twice, and none called {' or '.join(ADDED)}",
            code="ticket.wrong_name_columns",
        )
    people: dict[str, Person] = {}
    for line, cells in rows:
        public = dict(zip(columns, cells))
        name = public.pop(NAME)
        if not (key := looks(name)):
            raise InputError(f"{path}: line {line}: must have a name", code="ticket.incomplete_name_line")
        if key in people:
            raise InputError(
                f"{path}: names {visible(name[:64])!r} twice: give two people different names",
                code="ticket.duplicate_name",
            )
        people[key] = Person(name, public)
    if not people:
        raise InputError(f"{path}: names nobody", code="ticket.no_names")
    return list(people.values())


Write = Callable[[Sequence[Person], Sequence[str]], None]


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

            @stack.callback
            def remove_empty_folder() -> None:
                with suppress(OSError):
                    os.rmdir(str(pictures))

        if path == STREAM:
            file = standard_output()
        else:
            with _naming(path):
                file = open(path, "x", newline="", encoding="utf-8", opener=_open)  # noqa: SIM115

            @stack.callback
            def close_file() -> None:
                try:
                    file.close()
                finally:
                    if not os.path.getsize(path):
                        os.unlink(path)

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
