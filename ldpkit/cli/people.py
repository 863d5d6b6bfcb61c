"""Lists of people to invite: CSV with a column `name`, and one for each public field of their tickets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from ldp_client.documents.errors import InputError
from ldp_client.words.text import visible

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
