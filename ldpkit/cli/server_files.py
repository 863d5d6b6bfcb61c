"""The commands token, migrate, backup, restore and ohttp, on a server's files."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collector.settings import FILE_NAME, Settings
from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import command, out_option
from ldpkit.cli.output import warn

if TYPE_CHECKING:
    from collector.db import Database


@command("token", "token")
def token() -> None:
    """Show the operator's token that `ldpkit init` made."""
    made = Settings.load().token
    if made is None:
        raise InputError(
            f"no token is set: start in the folder that has {FILE_NAME}", code="keys.no_token_set"
        )
    print(made)


def database_of_settings() -> Database:
    """Return the database that the settings name."""
    from collector.db import Database

    settings = Settings.load()
    return Database(settings.database, settings.lock_timeout)


@command("migrate", "migrate")
def migrate() -> None:
    """Bring an earlier release's database to this one; no server may run on it."""
    from collector import migrations

    database = database_of_settings()
    migrations.migrate(database)
    print(f"{database.shown} is this release's")


@command("backup", "backup --out backup.sqlite3")
@out_option("a new file")
def backup(out: str) -> None:
    """Copy the collector's database while it is in use."""
    from sqlalchemy.exc import SQLAlchemyError

    from collector import audit_log
    from collector.backup import back_up

    database = database_of_settings()
    back_up(database, Path(out))
    try:
        # `ldpkit status --health` reads it.
        database.act(lambda session: audit_log.record(session, audit_log.BY_SERVER, audit_log.BACKUP))
    except SQLAlchemyError:
        # A replica, or a file that is read-only here.
        warn(f"{database.shown} takes no line about this backup: `ldpkit status --health` does not see it")
    print(f"{out} has everything up to now: keep it from others")


@command("restore", "restore backup.sqlite3")
@click.argument("backup", metavar="BACKUP")
def restore(backup: str) -> None:
    """Put a backup in the place of the database; no server may run on it."""
    from collector import backup as backups

    database = database_of_settings()
    replaced = backups.restore(database, Path(backup))
    kept = "" if replaced is None else f"; what was there is {replaced} now: delete it once all is well"
    print(f"{database.shown} is {backup} now{kept}")


@command("ohttp", "ohttp ohttp.keys --rotate")
@click.argument("file", metavar="FILE")
@click.option("--rotate", is_flag=True, help="add a newer key, or the first one; earlier keys stay valid")
@click.option("--retire", type=int, metavar="N", help="remove key N, which no app ships any more")
def ohttp(file: str, rotate: bool, retire: int | None) -> None:
    """Print the newest key of a collector's gateway as an app ships it.

    FILE is the setting ohttp_keys.
    """
    from collector.oblivious import GatewayKeys

    if rotate and retire is not None:
        raise click.UsageError("--rotate and --retire exclude each other")
    if rotate and not os.path.lexists(file):
        keys = GatewayKeys.generate()
        keys.save(file)
        warn(f"the key is in {file}; the key for an app is")
    elif rotate:
        keys = GatewayKeys.load(file).rotated()
        keys.replace(file)
        older = ", ".join(str(key.number) for key in keys.keys[1:])
        warn(f"key {keys.keys[0].number} is the newest, {older} stay valid: start the collector again")
        warn("the key for an app is")
    else:
        keys = GatewayKeys.load(file)
    if retire is not None:
        keys = keys.without(retire)
        keys.replace(file)
        warn(
            f"key {retire} is gone: start the collector again; apps that ship the key keep their reports and "
            "cannot withdraw"
        )
    print(b64encode(keys.keys[0].configuration).decode())
