"""The command `ldpkit init`: it makes a folder for a server, from which `ldpkit serve` starts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import command
from schemas.disk import write_new

if TYPE_CHECKING:
    from sqlalchemy import Connection

COLLECTOR, NODE, ISSUER = "collector", "node", "issuer"
DATABASE_NAME = "ldpkit.sqlite3"
GATEWAY_KEYS_NAME = "ohttp.keys"
# A node's keys.
KEY_FILE = "node.key"
TOKEN_BYTES = 32
OWNER_ONLY = 0o600
SETTINGS = """\
# Settings of a server: see docs/operate.md. Keep them to yourself: the token may do everything.
database = {database}
token = {token}
ticket_key = {ticket_key}
"""
NEXT = {
    COLLECTOR: """\
made {settings} and {database}
next, in {folder}:
  ldpkit serve                                   # start it; in another terminal of this folder:
  export LDPKIT_TOKEN="$(ldpkit token)"          # the operator's token, to publish and export with
""",
    NODE: """\
made {settings} and {database}
next, in {folder}:
  ldpkit serve --as node                         # start it, behind TLS
a study names the node by its own address and these keys:
""",
    ISSUER: """\
made {settings} and {database}
next, in {folder}:
  ldpkit serve --as issuer --port 8100           # behind TLS; in another terminal of this folder:
  export LDPKIT_TOKEN="$(ldpkit token)"          # the operator's token
  ldpkit tickets key STUDY_ID --collector http://127.0.0.1:8100
""",
}
kind_option = click.option(
    "--as",
    "kind",
    type=click.Choice([COLLECTOR, NODE, ISSUER]),
    default=COLLECTOR,
    help="a collector (default), a node of secure sums, or an issuer of blind tickets",
)


@command("init", "init survey")
@click.argument("folder", default=".", metavar="[FOLDER]")
@kind_option
@click.option("--database", metavar="URL", help=f"an empty one; default FOLDER/{DATABASE_NAME}, new")
def init(folder: str, kind: str, database: str | None) -> None:
    """Make a place for a server: database, token, settings. Default: this folder.

    For a node it prints what a study names the node as, https://NODE#KEYS. In its place, only that.
    """
    from collector.settings import FILE_NAME

    place = Path(os.path.abspath(folder))
    if kind != NODE or not (place / FILE_NAME).exists() or not (place / KEY_FILE).exists():
        shown = make_place(place, database, kind)
        text = NEXT[kind].format(settings=place / FILE_NAME, database=shown, folder=place)
        print(text, end="", file=sys.stderr)
    if kind == NODE:
        from collector.nodes.keys import NodeKeys

        print(f"https://NODE#{NodeKeys.load(place / KEY_FILE).fragment}")


def make_place(folder: Path, database: str | None, kind: str = COLLECTOR) -> str:
    """Make a place with its database; return where the database is, in words. Raises InputError."""
    from collector.db import Database, sqlite_url
    from collector.migrations import make
    from collector.nodes.keys import NodeKeys
    from collector.settings import FILE_NAME, Settings, refuse_unknown_variables

    # 1. Refuse a folder that cannot be made, or is a place already.
    refuse_unknown_variables()
    if not folder.parent.is_dir():
        raise InputError(
            f"cannot make {folder}: there is no folder {folder.parent}", code="files.parent_missing"
        )
    settings = folder / FILE_NAME
    if settings.exists():
        raise InputError(
            f"{settings} is there: this is a server's place already; start it with ldpkit serve, or correct "
            "what the file says",
            code="settings.place_exists",
        )
    with _made(folder), ExitStack() as undo:
        # 2. Make keys. Existing ones stay: studies state them, and an earlier start may have been stopped.
        if kind == NODE and not (folder / KEY_FILE).exists():
            NodeKeys.generate().save(folder / KEY_FILE)
        # 3. Make the database, and write the settings in the transaction that makes the tables: if the disk
        # is full, both fail and init can run again.
        url = database or sqlite_url(folder / DATABASE_NAME)

        def write(_connection: Connection) -> None:
            _write_settings(folder, url, kind == COLLECTOR)
            undo.callback(settings.unlink)

        made = Database(url, Settings.lock_timeout)
        make(made, fill=write)
        undo.pop_all()
    return made.shown


def _write_settings(folder: Path, database: str, has_gateway: bool) -> None:
    from collector.keys import new_word
    from collector.oblivious import GatewayKeys
    from collector.settings import FILE_NAME

    values = {
        "database": _from_inside(database, folder),
        "token": new_word(TOKEN_BYTES),
        "ticket_key": new_word(TOKEN_BYTES),
    }
    text = SETTINGS.format(**{name: json.dumps(value) for name, value in values.items()})
    if has_gateway:
        keys = folder / GATEWAY_KEYS_NAME
        if keys.exists():
            GatewayKeys.load(keys)
        else:
            GatewayKeys.generate().save(keys)
        text += f'ohttp_keys = "{GATEWAY_KEYS_NAME}"\n'
    write_new(folder / FILE_NAME, text, OWNER_ONLY)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make the folder if it is missing. If the block raises, remove a folder that was made and is empty."""
    is_there = folder.exists()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}", code="files.folder_not_made") from None
    try:
        yield
    except BaseException:
        if not is_there:
            with suppress(OSError):
                folder.rmdir()
        raise


def _from_inside(database: str, folder: Path) -> str:
    """Return a database's URL for the settings in a folder: a path relative to it if the file is inside.

    Then a copy of the folder uses its own copy of the database, and a moved folder still finds its database.
    """
    from sqlalchemy import make_url

    url = make_url(database)
    if not url.drivername.startswith("sqlite") or not url.database or url.database.startswith("file:"):
        return database
    path = Path(os.path.abspath(url.database))
    inside = path.relative_to(folder) if path.is_relative_to(folder) else path
    return url.set(database=str(inside)).render_as_string(hide_password=False)
