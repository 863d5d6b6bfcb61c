"""Lists of people to invite: CSV with a column `name`, and one for each public field of their tickets."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import visible
from ldpkit.cli.links import NAME

# Columns that the list of tickets adds.
ADDED = ("ticket", "link")


class Person(NamedTuple):
    """A person to invite. name: "" for none. public: the values that the ticket carries, by field."""

    name: str
    public: dict[str, str]

    def document(self) -> dict[str, object]:
        """Return the person as the issuer takes it."""
        return {"name": self.name, "public": public_document(self.public)}


def public_document(public: dict[str, str]) -> list[dict[str, str]]:
    """Return public values as servers take them."""
    return [{"field": field, "value": public[field]} for field in sorted(public)]


def public_of(settings: tuple[str, ...]) -> dict[str, str]:
    """Return the values that --public states, by field. Raises UsageError."""
    public: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name or not value or name in public:
            raise UsageError(
                f"--public {visible(setting[:64])}: must be FIELD=VALUE, once for each field",
                code="ticket.wrong_public",
            )
        public[name] = value
    return public


def read_people(path: str) -> list[Person]:
    """Return the people whom a file names. Raises InputError."""
    from collector.tickets.issue import looks
    from ldp_client.files.disk import read_bytes

    try:
        text = read_bytes(Path(path)).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        columns = list(reader.fieldnames or ())
        if NAME not in columns or set(ADDED) & set(columns):
            raise InputError(
                f"{path}: must be CSV with a column {NAME!r}, and none called {' or '.join(ADDED)}",
                code="ticket.wrong_name_columns",
            )
        if len(set(columns)) < len(columns):
            raise InputError(f"{path}: has a column twice", code="ticket.duplicate_column")
        people = [_person(row, path, reader.line_num) for row in reader]
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8", code="files.not_utf8") from None
    except csv.Error as error:
        raise InputError(f"{path}: is no CSV: {error}", code="files.not_csv") from None
    if not people:
        raise InputError(f"{path}: names nobody", code="ticket.no_names")
    seen: set[str] = set()
    for person in people:
        if looks(person.name) in seen:
            raise InputError(
                f"{path}: names {visible(person.name[:64])!r} twice: give two people different names",
                code="ticket.duplicate_name",
            )
        seen.add(looks(person.name))
    return people


def _person(row: dict[str, str | None], path: str, line: int) -> Person:
    from collector.tickets.issue import looks

    # A longer row has its rest under None, and a shorter one None as its last values.
    if None in row or None in row.values() or not looks(row[NAME] or ""):
        raise InputError(
            f"{path}: line {line}: must have a name, and a value for each column",
            code="ticket.incomplete_name_line",
        )
    values = {name: value or "" for name, value in row.items()}
    return Person(values.pop(NAME), values)
