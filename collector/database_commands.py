"""The commands `ldpkit token`, `migrate`, `backup` and `restore`, which need no running collector."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from collector.settings import FILE_NAME, Settings
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from collector.db import Database
    from collector.migrations import Schema


def add_database_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register them."""
    text = "show the operator's token that ldpkit init made"
    add_command(subparsers, "token", text, "token").set_defaults(run=run_token)
    text = "bring an earlier release's database to this one; no server may run on it"
    migrate = add_command(subparsers, "migrate", text, "migrate")
    _add_database(migrate)
    migrate.set_defaults(run=run_migrate)
    text = "copy the collector's database while it is in use"
    backup = add_command(subparsers, "backup", text, "backup --out backup.sqlite3")
    _add_database(backup)
    backup.add_argument("--out", required=True, type=Path, metavar="FILE")
    backup.set_defaults(run=run_backup)
    text = "put a backup in the place of the database; no server may run on it"
    restore = add_command(subparsers, "restore", text, "restore backup.sqlite3")
    restore.add_argument("backup", type=Path, metavar="BACKUP")
    _add_database(restore)
    restore.set_defaults(run=run_restore)


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="URL", help=f"default {Settings.database}")


def _schema_of(database: Database) -> Schema:
    """Return an issuer's schema if the database has an issuer's tables, else a collector's."""
    from collector.issuer.models import ISSUER
    from collector.migrations import COLLECTOR, has_tables_of

    return ISSUER if has_tables_of(database, ISSUER) else COLLECTOR


def run_token(_arguments: argparse.Namespace) -> int:
    """ldpkit token"""
    token = Settings.load().token
    if token is None:
        raise InputError(
            f"no token is set: start in the folder that has {FILE_NAME}", code="keys.no_token_set"
        )
    print(token)
    return 0


def run_migrate(arguments: argparse.Namespace) -> int:
    """ldpkit migrate [--database URL]"""
    from collector.db import Database
    from collector.migrations import migrate

    settings = Settings.load(database=arguments.database)
    database = Database(settings.database, settings.lock_timeout)
    migrate(database, _schema_of(database))
    print(f"{database.shown} is this release's")
    return 0


def run_backup(arguments: argparse.Namespace) -> int:
    """ldpkit backup --out FILE [--database URL]"""
    from collector.backup import back_up
    from collector.db import Database
    from collector.issuer.maintenance import IS_COPY
    from collector.migrations import COLLECTOR

    settings = Settings.load(database=arguments.database)
    database = Database(settings.database, settings.lock_timeout)
    schema = _schema_of(database)
    if schema is COLLECTOR:
        back_up(database, arguments.out)
        print(f"{arguments.out} has everything up to now")
    else:
        back_up(database, arguments.out, schema, IS_COPY)
        print(f"{arguments.out} has everything up to now, the private keys too: keep it from others")
    return 0


def run_restore(arguments: argparse.Namespace) -> int:
    """ldpkit restore BACKUP [--database URL]"""
    from collector.backup import restore
    from collector.db import Database
    from collector.issuer.models import ISSUER
    from collector.migrations import COLLECTOR

    settings = Settings.load(database=arguments.database)
    database = Database(settings.database, settings.lock_timeout)
    schemas = (COLLECTOR,) if arguments.database is None else (COLLECTOR, ISSUER)
    replaced = restore(database, arguments.backup, schemas)
    kept = "" if replaced is None else f"; what was there is {replaced} now: delete it once all is well"
    print(f"{database.shown} is {arguments.backup} now{kept}")
    return 0
