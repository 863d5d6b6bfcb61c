"""The commands `ldpkit token`, `migrate`, `backup` and `restore`, which need no running collector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import command, out_option
from ldpkit.cli.output import warn

if TYPE_CHECKING:
    from collector.db import Database


@command("token", "token")
def token() -> None:
    """Show the operator's token that `ldpkit init` made."""
    from collector.settings import FILE_NAME, Settings

    made = Settings.load().token
    if made is None:
        raise InputError(
            f"no token is set: start in the folder that has {FILE_NAME}", code="keys.no_token_set"
        )
    print(made)


def database_of_settings() -> Database:
    """Return the database that the settings name."""
    from collector.db import Database
    from collector.settings import Settings

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
