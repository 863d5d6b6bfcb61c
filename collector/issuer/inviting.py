"""Make codes (`ldpkit issuer invite`) for people whom the operator names or only counts."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from collector.issuer.maintenance import opened_by, with_database
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import STREAM, read_bytes, standard_output, write_new
from ldp_client.words.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy.orm import Session

    from collector.issuer.store import Named, Person

OWNER_ONLY = 0o600
NAME, CODE = "name", "code"
NEW_NAMES = (
    "--again: names without a code here: {count} ({names}). If a name was spelt differently before, the "
    "person's earlier code stays valid"
)
HAS_TOKEN = (
    "{name} got a token already: with a second one, this person may send two reports. If that is intended "
    "(lost phone, new version), add --second-token"
)
MAY_HAVE_TOKEN = (
    "{name} may have got a token after the backup that was restored: with a second one, this person may "
    "send two reports. If the person has none, add --second-token"
)
UNNAMED_TOKENS = (
    "{count} of people without names got a token, or may have: with new codes, these people may send two "
    "reports. If that is intended (new version), add --second-token"
)
SHOWN = 5


def add_invite(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register invite."""
    text = "make codes, each for one token"
    invite = with_database(
        add_command(commands, "invite", text, "issuer invite habits --count 500 --out c.csv")
    )
    invite.add_argument("study", metavar="STUDY_ID")
    whom = invite.add_mutually_exclusive_group(required=True)
    whom.add_argument("--count", type=int, metavar="N", help="how many, for people without names")
    whom.add_argument(
        "--names",
        type=Path,
        metavar="FILE.csv",
        help=f"people: a column {NAME!r}, and one for each public field",
    )
    invite.add_argument("--public", action="append", default=[], metavar="FIELD=VALUE", help="the stratum's")
    text = "replace codes: an unused one ends; with --count, all unused codes of people without names"
    invite.add_argument("--again", action="store_true", help=text)
    text = "with --again, also replace used codes: their people may send two reports"
    invite.add_argument("--second-token", action="store_true", help=text)
    invite.add_argument("--out", required=True, metavar="FILE.csv", help="gets names and codes; must be new")
    invite.set_defaults(run=run_invite)


def public_of(given: list[str]) -> dict[str, str]:
    """Return {field: value} from FIELD=VALUE arguments. Raises UsageError."""
    public: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name or not value or name in public:
            raise UsageError(
                f"--public {visible(setting[:64])}: give FIELD=VALUE, each field once",
                code="issuer.wrong_public",
            )
        public[name] = value
    return public


def run_invite(arguments: argparse.Namespace) -> int:
    """ldpkit issuer invite STUDY_ID --count N --out FILE.csv"""
    from collector.issuer.store import add_codes, refuse_copy

    if arguments.second_token and not arguments.again:
        raise UsageError("--second-token goes with --again", code="issuer.second_token_needs_again")
    if arguments.out != STREAM and Path(arguments.out).exists():
        raise InputError(f"{arguments.out}: is there already", code="files.exists")
    people = _people(arguments)
    # Before the transaction: while it is open, other requests to an issuer on SQLite wait.
    wanted = [(person.name, _looks(person.name)) for person in people if person.name]
    with opened_by(arguments) as database, database.write() as session:
        refuse_copy(session, is_changing=True)
        if wanted:
            _refuse_named(session, arguments, wanted)
        elif arguments.again:
            _end_unnamed(session, arguments, people[0].public)
        codes = add_codes(session, arguments.study, people)
        # Before the codes become valid: if the list cannot be written, no code is stored.
        _write(arguments.out, people, codes)
    made = (
        f"{counted(len(codes), 'code')} in {arguments.out}: each gets one token; give each person their own"
    )
    print(made, file=sys.stderr)
    return 0


def _people(arguments: argparse.Namespace) -> list[Person]:
    from collector.issuer.store import MOST_AT_ONCE, Person

    public = public_of(arguments.public)
    if arguments.names is None:
        if not 1 <= arguments.count <= MOST_AT_ONCE:
            raise UsageError(
                f"--count {arguments.count}: must be from 1 to {MOST_AT_ONCE}", code="issuer.wrong_count"
            )
        return [Person("", public)] * arguments.count
    if public:
        raise UsageError(
            "--public does not go with --names: the file has a column for each public field",
            code="issuer.public_with_names",
        )
    try:
        text = read_bytes(arguments.names).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{arguments.names}: is not UTF-8", code="files.not_utf8") from None
    try:
        return _read_people(csv.DictReader(io.StringIO(text, newline="")), arguments)
    except csv.Error as error:
        raise InputError(f"{arguments.names}: is no CSV: {error}", code="files.not_csv") from None


def _read_people(reader: csv.DictReader[str], arguments: argparse.Namespace) -> list[Person]:
    columns = reader.fieldnames or ()
    if NAME not in columns or CODE in columns:
        raise InputError(
            f"{arguments.names}: must be CSV with a column {NAME!r}, and none called {CODE!r}",
            code="issuer.wrong_name_columns",
        )
    for column in columns:
        if columns.count(column) > 1:
            raise InputError(
                f"{arguments.names}: has the column {column[:64]!r} twice", code="issuer.duplicate_column"
            )
    people = [_person(row, arguments.names, reader.line_num) for row in reader]
    if not people:
        raise InputError(f"{arguments.names}: names nobody", code="issuer.no_names")
    return people


def _person(row: dict[str, str | None], file: Path, line: int) -> Person:
    from collector.issuer.store import Person

    if None in row or None in row.values() or not _looks(row[NAME] or ""):
        raise InputError(
            f"{file}: line {line}: must have a name, and a value for each column",
            code="issuer.incomplete_name_line",
        )
    values = {name: value or "" for name, value in row.items()}
    return Person(values.pop(NAME), values)


def _refuse_named(session: Session, arguments: argparse.Namespace, wanted: Sequence[tuple[str, str]]) -> None:
    """End the codes that `--again` replaces.

    Args:
        session: the transaction.
        arguments: the command's arguments.
        wanted: each name, with its form for comparison.

    Raises:
        InputError: a person would get a second token without --second-token.
    """
    from collector.issuer.store import end_unused, names_of

    known = {one.name: _looks(one.name) for one in names_of(session, arguments.study)}
    _refuse_known(wanted, {} if arguments.again else {looks: name for name, looks in known.items()})
    if not arguments.again:
        return
    there = set(known.values())
    strangers = [visible(name[:64]) for name, looks in wanted if looks not in there]
    if strangers:
        print(NEW_NAMES.format(names=", ".join(strangers[:SHOWN]), count=len(strangers)), file=sys.stderr)
    ended = {looks for _, looks in wanted}
    end_unused(session, arguments.study, {name for name, looks in known.items() if looks in ended})
    if not arguments.second_token:
        # Checked after the codes ended, to count a token that was issued until then.
        _refuse_tokens(wanted, names_of(session, arguments.study, with_token=True))


def _end_unnamed(session: Session, arguments: argparse.Namespace, public: Mapping[str, str]) -> None:
    """End the codes that `--again` replaces, of people without names: their codes cannot be told apart.

    Raises InputError if a person would get a second token without --second-token.
    """
    from collector.issuer.store import end_unnamed

    ended, left = end_unnamed(session, arguments.study, public)
    if left and not arguments.second_token:
        raise InputError(UNNAMED_TOKENS.format(count=counted(left, "code")), code="issuer.unnamed_tokens")
    print(f"{counted(ended, 'code')} of people without names ended", file=sys.stderr)


def _refuse_known(wanted: Iterable[tuple[str, str]], seen: dict[str, str]) -> None:
    """Raise InputError if a name is already known, or is listed twice.

    seen: {a name's form for comparison: the name}.
    """
    for name, looks in wanted:
        if looks in seen:
            raise InputError(
                f"{visible(name[:64])} has a code already{_alike(name, seen[looks])}",
                code="issuer.duplicate_name",
            )
        seen[looks] = name


def _refuse_tokens(wanted: Iterable[tuple[str, str]], with_token: Iterable[Named]) -> None:
    """Raise InputError if any of these people got a token, or may have got one."""
    # Sorted, so that a known token overrides a possible one.
    found = {_looks(one.name): one.token for one in sorted(with_token, key=lambda one: bool(one.token))}
    for name, looks in wanted:
        if looks in found:
            said = HAS_TOKEN if found[looks] else MAY_HAVE_TOKEN
            raise InputError(said.format(name=visible(name[:64])), code="issuer.name_has_token")


@lru_cache(maxsize=1 << 16)
def _looks(name: str) -> str:
    """Return a name without capitals, outer blanks and invisible marks, because spreadsheets add such."""
    shown = "".join(one for one in normalize("NFKC", name) if category(one) != "Cf")
    return " ".join(shown.split()).casefold()


def _alike(name: str, known: str) -> str:
    """Return the end of a refusal for a name that is known, perhaps in another spelling."""
    if name == known:
        return ": one person gets one token; --again replaces it"
    return (
        f", as {known[:64]!a} (this is {name[:64]!a}): one person gets one token; give two people "
        "names that differ in more than capitals, blanks and how a letter is written"
    )


def _write(path: str, people: Sequence[Person], codes: Sequence[str]) -> None:
    out = io.StringIO()
    fields = list(people[0].public)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([NAME, *fields, CODE])
    for person, code in zip(people, codes, strict=True):
        writer.writerow([person.name, *[person.public[field] for field in fields], code])
    if path == STREAM:
        print(out.getvalue(), end="", file=standard_output())
    else:
        write_new(Path(path), out.getvalue(), OWNER_ONLY)
