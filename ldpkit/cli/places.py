"""The command `ldpkit init`: it makes a folder for a collector, from which `ldpkit serve` starts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import write_new
from ldpkit.cli.commands import command

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from collector.settings import Settings

DATABASE_NAME = "ldpkit.sqlite3"
GATEWAY_KEYS_NAME = "ohttp.keys"
TOKEN_BYTES = 32
OWNER_ONLY = 0o600
SETTINGS = """\
# Settings of a collector: see docs/operate.md. Keep them to yourself: the token may do everything.
database = {database}
token = {token}
ticket_key = {ticket_key}
ohttp_keys = {ohttp_keys}
"""
NEXT = """\
made {settings} and {database}
next, in {folder}:
  ldpkit serve                                   # start it; in another terminal of this folder:
  export LDPKIT_TOKEN="$(ldpkit token)"          # the operator's token, to publish and export with
"""


@command("init", "init survey")
@click.argument("folder", default=".", metavar="[FOLDER]")
@click.option("--database", metavar="URL", help=f"an empty one; default FOLDER/{DATABASE_NAME}, new")
def init(folder: str, database: str | None) -> None:
    """Make a place for a collector: database, token, settings. Default: this folder."""
    settings, shown = make_place(Path(folder), database)
    print(NEXT.format(settings=settings, database=shown, folder=settings.parent), end="", file=sys.stderr)


def make_place(
    folder: Path, database: str | None, make_more: Callable[[Path], object] = lambda _: None
) -> tuple[Path, str]:
    """Make a place with its database; return the settings' path and where the database is, in words.

    make_more: makes more files in the folder. Raises InputError.
    """
    from collector.db import sqlite_url
    from collector.settings import FILE_NAME, Settings, refuse_unknown_variables

    refuse_unknown_variables()
    folder = Path(os.path.abspath(folder))
    if not folder.parent.is_dir():
        raise InputError(
            f"cannot make {folder}: there is no folder {folder.parent}", code="files.parent_missing"
        )
    settings = folder / FILE_NAME
    if settings.exists():
        raise InputError(
            f"{settings} is there: this is a collector's place already; "
            "start it with ldpkit serve, or correct what the file says",
            code="settings.place_exists",
        )
    with _made(folder), ExitStack() as undo:
        make_more(folder)
        database = database or sqlite_url(folder / DATABASE_NAME)

        def write(_connection: Connection) -> None:
            _write_settings(folder, database)
            undo.callback(settings.unlink)

        # In the transaction that makes the tables: if the disk is full, both fail and init can run again.
        shown = make_database(Settings(database=database), write)
        undo.pop_all()
    return settings, shown


def _write_settings(folder: Path, database: str) -> None:
    from collector.keys import new_word
    from collector.settings import FILE_NAME

    values = {"database": _from_inside(database, folder), "token": new_word(TOKEN_BYTES)}
    values["ticket_key"] = new_word(TOKEN_BYTES)
    values["ohttp_keys"] = GATEWAY_KEYS_NAME
    _make_gateway_keys(folder / GATEWAY_KEYS_NAME)
    text = SETTINGS.format(**{name: json.dumps(one) for name, one in values.items()})
    write_new(folder / FILE_NAME, text, OWNER_ONLY)


def _make_gateway_keys(path: Path) -> None:
    """Make the gateway's keys, but keep existing ones, because studies state them."""
    from collector.oblivious import GatewayKeys

    if path.exists():
        GatewayKeys.load(path)
    else:
        GatewayKeys.generate().save(path)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make the folder if it is missing. If the block raises, remove a folder that was made and is empty."""
    there = folder.exists()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}", code="files.folder_not_made") from None
    try:
        yield
    except BaseException:
        if not there:
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


def make_database(settings: Settings, fill: Callable[[Connection], object] = lambda _: None) -> str:
    """Make the database that settings name; return where it is, in words. Raises InputError if it exists.

    fill: runs in the transaction that makes the tables; if it fails, no database is made.
    """
    from collector.db import Database
    from collector.migrations import make

    database = Database(settings.database, settings.lock_timeout)
    make(database, fill=fill)
    return database.shown
