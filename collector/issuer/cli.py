"""The subcommands of `ldpkit issuer`: init, key, serve, status. Others: inviting.py, maintenance.py."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from collector.issuer.inviting import add_invite, public_of
from collector.issuer.maintenance import BUSY_SECONDS, DATABASE_NAME, add_keeping, opened_by, with_database
from ldp_client.commands.output import add_output, show
from ldp_client.commands.parsers import add_command
from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.channel import WEB_ADDRESS
from ldp_client.documents.errors import DocumentError, InputError, UsageError
from ldp_client.files.disk import standard_output
from ldp_client.words.text import counted, visible

if TYPE_CHECKING:
    from collector.issuer.store import Count

NEXT = """\
made {database}
next, in {folder}:
  ldpkit issuer key STUDY_ID          # a key for a study; prints its document's channel.tickets
  ldpkit issuer invite STUDY_ID --count N --out codes.csv
  ldpkit issuer serve --port 8100     # behind TLS at {address}
"""
REMOVED = "removed the key and {codes} of it: if a study names it, publish that study again without it"
TOKEN = {True: "has a token", False: "no token yet", None: "may have a token"}
IN_CLEAR = (
    "--host {host} without https: put a proxy with TLS in front, or name --tls-certificate and --tls-key"
)


def add_issuer(parser: argparse.ArgumentParser) -> None:
    """Register all of them."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    text = "make a place for an issuer, with a separate database"
    init = add_command(commands, "init", text, "issuer init issuer --address https://issuer.example")
    init.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="default: here")
    init.add_argument("--address", required=True, metavar="URL", help="where devices reach it")
    init.add_argument("--database", metavar="URL", help=f"an empty one; default FOLDER/{DATABASE_NAME}, new")
    init.set_defaults(run=run_init)
    text = "make a key for a study or a stratum; print its channel.tickets"
    key = with_database(add_command(commands, "key", text, "issuer key habits --public region=north"))
    key.add_argument("study", metavar="STUDY_ID")
    key.add_argument("--public", action="append", default=[], metavar="FIELD=VALUE", help="the stratum's")
    instead = key.add_mutually_exclusive_group()
    instead.add_argument("--show", action="store_true", help="make none: print what there is")
    text = "remove this key and its codes, if no person has a token of it"
    instead.add_argument("--remove", action="store_true", help=text)
    key.set_defaults(run=run_key)
    add_invite(commands)
    serve = with_database(add_command(commands, "serve", "run the issuer", "issuer serve --port 8100"))
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8100, help="0 takes any free port (default 8100)")
    text = "for https without a proxy: a PEM file, the server's own certificate first"
    serve.add_argument("--tls-certificate", type=Path, metavar="FILE", help=text)
    serve.add_argument(
        "--tls-key", type=Path, metavar="FILE", help="its private key in PEM, readable only by its owner"
    )
    serve.add_argument("--ready-file", metavar="FILE", help="gets the base URL once the server listens")
    serve.set_defaults(run=run_serve)
    text = "print how many codes and tokens there are"
    status = with_database(add_command(commands, "status", text, "issuer status"))
    status.add_argument(
        "study", nargs="?", metavar="STUDY_ID", help="with the names of people who have a token"
    )
    add_output(status)
    status.set_defaults(run=run_status)
    add_keeping(commands)


def run_init(arguments: argparse.Namespace) -> int:
    """ldpkit issuer init [FOLDER] --address URL"""
    from sqlalchemy import insert

    from collector.db import Database, sqlite_url
    from collector.issuer.models import ISSUER, IssuerRow
    from collector.migrations import make

    try:
        address = WEB_ADDRESS.read(arguments.address, "--address", DocumentError)
    except DocumentError as error:
        raise UsageError(f"--address {error.problem}", code="issuer.wrong_address") from None
    folder = arguments.folder.absolute()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}", code="files.folder_not_made") from None
    database = Database(arguments.database or sqlite_url(folder / DATABASE_NAME), BUSY_SECONDS)
    row = insert(IssuerRow).values(address=address.rstrip("/"))
    make(database, ISSUER, lambda connection: connection.execute(row))
    database.engine.dispose()
    print(NEXT.format(database=database.shown, folder=folder, address=address), end="", file=sys.stderr)
    return 0


def run_key(arguments: argparse.Namespace) -> int:
    """ldpkit issuer key STUDY_ID [--public FIELD=VALUE] [--show | --remove]"""
    from collector.issuer.store import add_key, refuse_copy, remove_key, tokens_block

    public = public_of(arguments.public)
    with opened_by(arguments) as database, database.write() as session:
        if not arguments.show:
            refuse_copy(session, is_changing=True)
        if arguments.remove:
            codes = remove_key(session, arguments.study, public)
        elif not arguments.show:
            add_key(session, arguments.study, public)
        block = tokens_block(session, arguments.study)
    if arguments.remove:
        print(REMOVED.format(codes=counted(codes, "code")), file=sys.stderr)
    elif not block["keys"]:
        raise InputError(f"study {arguments.study[:64]} has no key here", code="issuer.unknown_study")
    print(json.dumps({"tickets": block}, indent=2, ensure_ascii=False), file=standard_output())
    return 0


def run_serve(arguments: argparse.Namespace) -> int:
    """ldpkit issuer serve [--database URL]"""
    from collector.db import sqlite_file
    from collector.issuer.app import create_issuer
    from collector.issuer.order_erasing import forgetting
    from collector.logs import refuse_ready, write_ready
    from collector.server import Endpoint, serve
    from collector.wal import served_alone

    refuse_ready(arguments.ready_file)
    certificate, key = arguments.tls_certificate, arguments.tls_key
    endpoint = Endpoint(arguments.host, arguments.port, certificate=certificate, key=key)
    if certificate is None and arguments.host not in LOOPBACK:
        print(IN_CLEAR.format(host=arguments.host), file=sys.stderr)

    def announce(url: str) -> None:
        print(f"ldpkit issuer listens on {url}", file=sys.stderr, flush=True)
        write_ready(arguments.ready_file, url)

    with served_alone(sqlite_file(arguments.database)), forgetting(arguments.database):
        serve(lambda _in_worker: create_issuer(arguments.database), endpoint, announce, "text")
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    """ldpkit issuer status [STUDY_ID]"""
    from collector.issuer.store import address_of, counts, names_of

    with opened_by(arguments) as database, database.read() as session:
        address, found = address_of(session), counts(session)
        named = names_of(session, arguments.study) if arguments.study else []
    found = [one for one in found if arguments.study in (None, one.study)]
    if arguments.study and not found:
        raise InputError(f"study {arguments.study[:64]} has no key here", code="issuer.unknown_study")
    lines = [_counts_line(one) for one in found]
    lines += [f"  {visible(one.name)}: {TOKEN[one.token]}" for one in named]
    document = {
        "address": address,
        "keys": [one._asdict() for one in found],
        "people": [one._asdict() for one in named],
    }
    show(arguments, [f"issuer {address}", *(lines or ["no keys yet"])], document)
    return 0


def _counts_line(count: Count) -> str:
    from collector.issuer.store import shown

    of_key = f"{count.study}, {visible(shown(count.public))}"
    ended = f"; {count.ended} more ended as a backup was put back" if count.ended else ""
    return f"{of_key}: {count.tokens} of {counted(count.codes, 'code')} got a token{ended}"
