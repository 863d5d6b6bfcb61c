"""The subcommands of `ldpkit issuer`: init, key, invite, serve, status; keeping.py has the others."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from collector.issuer.keeping import BUSY_SECONDS, DATABASE_NAME, add_keeping, opened_by, with_database
from ldp_client.commands.output import add_output, show
from ldp_client.commands.parsers import add_command
from ldp_client.device.policy import LOOPBACK
from ldp_client.documents.channel import WebAddress
from ldp_client.documents.errors import DocumentError, InputError, UsageError
from ldp_client.files.disk import STREAM, read_bytes, write_new
from ldp_client.words.text import counted, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from collector.issuer.book import Person

OWNER_ONLY = 0o600
NAME, CODE = "name", "code"
NEXT = """\
made {database}
next, in {folder}:
  ldpkit issuer key STUDY_ID          # a key for a study; prints what its document says of tokens
  ldpkit issuer invite STUDY_ID --count N --out codes.csv
  ldpkit issuer serve --port 8100     # behind TLS at {address}
"""
REMOVED = "removed the key and {codes} of it: a study that names it is to be published anew, without it"
NEW_NAMES = (
    "--again: of {count} no code is known here ({names}): where a name was written otherwise before, that "
    "person's earlier code is still good"
)
SHOWN = 5
IN_CLEAR = "--host {host} without https: put a proxy with TLS in front, or name --certificate and --key"


def add_issuer(parser: argparse.ArgumentParser) -> None:
    """Register all of them."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "make a place for an issuer: a database of its own"
    init = add_command(commands, "init", text, "issuer init issuer --address https://issuer.example")
    init.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="default: here")
    init.add_argument("--address", required=True, metavar="URL", help="where devices reach it")
    init.add_argument("--database", metavar="URL", help=f"an empty one; default FOLDER/{DATABASE_NAME}, new")
    init.set_defaults(run=run_init)
    text = "make a key for a study or a stratum; print its channel.tokens"
    key = with_database(add_command(commands, "key", text, "issuer key habits --public region=north"))
    key.add_argument("study", metavar="STUDY_ID")
    key.add_argument("--public", action="append", default=[], metavar="FIELD=VALUE", help="the stratum's")
    instead = key.add_mutually_exclusive_group()
    instead.add_argument("--show", action="store_true", help="make none: print what there is")
    text = "make none: remove that one, with its codes, where nobody has a token of it"
    instead.add_argument("--remove", action="store_true", help=text)
    key.set_defaults(run=run_key)
    _add_invite(commands)
    serve = with_database(add_command(commands, "serve", "run the issuer", "issuer serve --port 8100"))
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8100, help="0 takes any free port (default 8100)")
    text = "for https without a proxy: a PEM file, the server's own certificate first"
    serve.add_argument("--certificate", metavar="FILE", help=text)
    serve.add_argument("--key", metavar="FILE", help="its private key in PEM, which nobody else can read")
    serve.add_argument("--ready-file", metavar="FILE", help="gets the base URL once the server listens")
    serve.set_defaults(run=run_serve)
    text = "say how many codes and tokens there are"
    status = with_database(add_command(commands, "status", text, "issuer status"))
    status.add_argument(
        "study", nargs="?", metavar="STUDY_ID", help="with the names of those who have a token"
    )
    add_output(status)
    status.set_defaults(run=run_status)
    add_keeping(commands)


def _add_invite(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
    text = "also those who have a code: an unused one ends"
    invite.add_argument("--again", action="store_true", help=text)
    text = "with --again, also whose code got its token: that person may send two reports"
    invite.add_argument("--second-token", action="store_true", help=text)
    invite.add_argument("--out", required=True, metavar="FILE.csv", help="gets names and codes; must be new")
    invite.set_defaults(run=run_invite)


def run_init(arguments: argparse.Namespace) -> int:
    """ldpkit issuer init [FOLDER] --address URL"""
    from sqlalchemy import insert

    from collector.issuer.models import ISSUER, IssuerRow
    from collector.settings import sqlite_url
    from collector.storage.database import Database
    from collector.storage.migrating import make

    try:
        address = WebAddress().read(arguments.address, "--address", DocumentError)
    except DocumentError as error:
        raise UsageError(f"--address {error.problem}") from None
    folder = arguments.folder.absolute()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}") from None
    database = Database(arguments.database or sqlite_url(folder / DATABASE_NAME), BUSY_SECONDS)
    row = insert(IssuerRow).values(address=address.rstrip("/"))
    make(database, ISSUER, lambda connection: connection.execute(row))
    database.engine.dispose()
    print(NEXT.format(database=database.shown, folder=folder, address=address), end="", file=sys.stderr)
    return 0


def run_key(arguments: argparse.Namespace) -> int:
    """ldpkit issuer key STUDY_ID [--public FIELD=VALUE] [--show | --remove]"""
    from collector.issuer.book import add_key, remove_key, tokens_block

    public = _settings(arguments.public)
    with opened_by(arguments) as database, database.write() as session:
        if arguments.remove:
            codes = remove_key(session, arguments.study, public)
        elif not arguments.show:
            add_key(session, arguments.study, public)
        block = tokens_block(session, arguments.study)
    if arguments.remove:
        print(REMOVED.format(codes=counted(codes, "code")), file=sys.stderr)
    elif not block["keys"]:
        raise InputError(f"study {arguments.study[:64]} has no key here")
    print(json.dumps({"tokens": block}, indent=2, ensure_ascii=False))
    return 0


def _settings(given: list[str]) -> dict[str, str]:
    """{field: value} from FIELD=VALUE arguments. Raises UsageError."""
    public: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name or not value or name in public:
            raise UsageError(f"--public {visible(setting[:64])}: give FIELD=VALUE, each field once")
        public[name] = value
    return public


def run_invite(arguments: argparse.Namespace) -> int:
    """ldpkit issuer invite STUDY_ID --count N --out FILE.csv"""
    from collector.issuer.book import add_codes

    if arguments.out != STREAM and Path(arguments.out).exists():
        raise InputError(f"{arguments.out}: is there already")
    people = _people(arguments)
    with opened_by(arguments) as database, database.write() as session:
        _refuse_named(session, arguments, people)
        codes = add_codes(session, arguments.study, people)
        # Before the codes are good: a list that cannot be written leaves none.
        _write(arguments.out, people, codes)
    made = (
        f"{counted(len(codes), 'code')} in {arguments.out}: each gets one token; give each person their own"
    )
    print(made, file=sys.stderr)
    return 0


def _people(arguments: argparse.Namespace) -> list[Person]:
    from collector.issuer.book import MOST_AT_ONCE, Person

    public = _settings(arguments.public)
    if arguments.names is None:
        if not 1 <= arguments.count <= MOST_AT_ONCE:
            raise UsageError(f"--count {arguments.count}: must be from 1 to {MOST_AT_ONCE}")
        return [Person("", public)] * arguments.count
    if public:
        raise UsageError("--public does not go with --names: the file has a column for each public field")
    try:
        text = read_bytes(arguments.names).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{arguments.names}: is not UTF-8") from None
    try:
        return _read_people(csv.DictReader(io.StringIO(text, newline="")), arguments)
    except csv.Error as error:
        raise InputError(f"{arguments.names}: is no CSV: {error}") from None


def _read_people(reader: csv.DictReader[str], arguments: argparse.Namespace) -> list[Person]:
    if NAME not in (reader.fieldnames or ()) or CODE in (reader.fieldnames or ()):
        raise InputError(f"{arguments.names}: must be CSV with a column {NAME!r}, and none called {CODE!r}")
    return [_person(row, arguments.names, reader.line_num) for row in reader]


def _person(row: dict[str, str | None], file: Path, line: int) -> Person:
    from collector.issuer.book import Person

    if None in row or None in row.values() or not _looks(row[NAME] or ""):
        raise InputError(f"{file}: line {line}: must have a name, and a value for each column")
    values = {name: value or "" for name, value in row.items()}
    return Person(values.pop(NAME), values)


def _refuse_named(session: Session, arguments: argparse.Namespace, people: Sequence[Person]) -> None:
    """End what `--again` replaces. Raises InputError where somebody would get two tokens unasked."""
    from collector.issuer.book import end_unused, names_of

    before = names_of(session, arguments.study)
    used = {_looks(name) for name, got in before if got}
    seen = {} if arguments.again else {_looks(name): name for name, _ in before}
    for person in (one for one in people if one.name):
        name, looks = visible(person.name[:64]), _looks(person.name)
        if looks in seen:
            raise InputError(f"{name} has a code already{_alike(person.name, seen[looks])}")
        if looks in used and not arguments.second_token:
            raise InputError(
                f"{name} got a token already: with another that person may send two reports. Where that is "
                "meant, for a phone that was lost or a new version of the study, say --second-token"
            )
        seen[looks] = person.name
    known = {_looks(name) for name, _ in before}
    strangers = [visible(name[:64]) for looks, name in seen.items() if looks not in known]
    if arguments.again and strangers:
        print(NEW_NAMES.format(names=", ".join(strangers[:SHOWN]), count=len(strangers)), file=sys.stderr)
    ended = [name for name, _ in before if _looks(name) in seen] if arguments.again else []
    end_unused(session, arguments.study, ended)


def _looks(name: str) -> str:
    """A name without capitals, blanks around and marks that do not show: spreadsheets leave such."""
    shown = "".join(one for one in normalize("NFKC", name) if category(one) != "Cf")
    return " ".join(shown.split()).casefold()


def _alike(name: str, known: str) -> str:
    """What a refusal says of a name that is known, perhaps in another spelling."""
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
        print(out.getvalue(), end="")
    else:
        write_new(Path(path), out.getvalue(), OWNER_ONLY)


def run_serve(arguments: argparse.Namespace) -> int:
    """ldpkit issuer serve [--database URL]"""
    from collector.issuer.app import create_issuer
    from collector.serving.certificates import certificate_of
    from collector.serving.granian_server import serve_plain
    from collector.serving.place import Place
    from ldp_client.files.disk import replacing

    certificate = certificate_of(arguments.certificate, arguments.key)
    place = Place(arguments.host, arguments.port, certificate=certificate)
    if certificate is None and arguments.host not in LOOPBACK:
        print(IN_CLEAR.format(host=arguments.host), file=sys.stderr)

    def announce(url: str) -> None:
        print(f"ldpkit issuer listens on {url}", file=sys.stderr, flush=True)
        if arguments.ready_file is not None:
            with replacing(arguments.ready_file) as file:
                file.write(url + "\n")

    serve_plain(partial(create_issuer, arguments.database), place, announce, "text")
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    """ldpkit issuer status [STUDY_ID]"""
    from collector.issuer.book import address_of, counts, names_of, shown

    with opened_by(arguments) as database, database.read() as session:
        address, found = address_of(session), counts(session)
        named = names_of(session, arguments.study) if arguments.study else []
    found = [one for one in found if arguments.study in (None, one.study)]
    if arguments.study and not found:
        raise InputError(f"study {arguments.study[:64]} has no key here")
    lines = [
        f"{one.study}, {visible(shown(one.public))}: {one.tokens} of {counted(one.codes, 'code')} got a token"
        for one in found
    ]
    lines += [f"  {visible(name)}: {'has a token' if got else 'no token yet'}" for name, got in named]
    document = {
        "address": address,
        "keys": [one._asdict() for one in found],
        "people": [{"name": name, "token": got} for name, got in named],
    }
    show(arguments, [f"issuer {address}", *(lines or ["no keys yet"])], document)
    return 0
