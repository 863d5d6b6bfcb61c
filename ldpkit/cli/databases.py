"""The commands `ldpkit token`, `migrate`, `backup` and `restore`, which need no running collector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ldp_client.documents.errors import InputError
from ldpkit.cli.commands import command, out_option

if TYPE_CHECKING:
    from collector.db import Database

F = TypeVar("F", bound=Callable[..., Any])


def database_option(function: F) -> F:
    """Add --database, as `database: str | None`."""
    text = "another database than the settings name"
    return click.option("--database", metavar="URL", help=text)(function)


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


def database_of(url: str | None) -> Database:
    """Return the database at a URL, None for the settings' own."""
    from collector.db import Database
    from collector.settings import Settings

    settings = Settings.load(database=url)
    return Database(settings.database, settings.lock_timeout)


@command("migrate", "migrate")
@database_option
def migrate(database: str | None) -> None:
    """Bring an earlier release's database to this one; no server may run on it."""
    from collector import migrations

    found = database_of(database)
    migrations.migrate(found)
    print(f"{found.shown} is this release's")


@command("backup", "backup --out backup.sqlite3")
@out_option("a new file")
@database_option
def backup(out: str, database: str | None) -> None:
    """Copy the collector's database while it is in use."""
    from collector.backup import back_up

    back_up(database_of(database), Path(out))
    print(f"{out} has everything up to now: keep it from others")


@command("restore", "restore backup.sqlite3")
@click.argument("backup", metavar="BACKUP")
@database_option
def restore(backup: str, database: str | None) -> None:
    """Put a backup in the place of the database; no server may run on it."""
    from collector import backup as backups

    found = database_of(database)
    replaced = backups.restore(found, Path(backup))
    kept = "" if replaced is None else f"; what was there is {replaced} now: delete it once all is well"
    print(f"{found.shown} is {backup} now{kept}")
