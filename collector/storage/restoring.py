"""Putting a backup in the place of a database."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from sqlalchemy import inspect
from sqlalchemy.exc import SQLAlchemyError

from collector.storage.backup import flush, postgresql_call
from collector.storage.database import OWNER_ONLY, Database, one_line
from collector.storage.wal import TABLES, beside, free_name, locked
from ldp_client.documents.errors import InputError

# What a database's file, and each that SQLite keeps beside it, may be called; the log's index is made anew.
ENDINGS = ("", "-wal", "-journal")


def restore(database: Database, backup: Path) -> Path | None:
    """Put a backup in the place of a database, whole or not at all; the new name of the file that was there.

    An SQLite file keeps its log under its new name, so nothing is lost. PostgreSQL's database must be empty.
    Raises InputError for what is no backup, and while a server works on the file.
    """
    if not backup.is_file():
        raise InputError(f"there is no file {backup}", code="restore.no_file")
    if database.engine.dialect.name == "postgresql":
        _run_psql(database, backup)
        return None
    file = Path(str(database.url.database)).absolute()
    if not file.parent.is_dir():
        raise InputError(f"cannot write {file}: no such folder", code="restore.no_folder")
    with locked(file):
        return _take_place(backup, file.resolve())


def _take_place(backup: Path, file: Path) -> Path | None:
    new = free_name(file.with_name(f"{file.name}.new"))
    try:
        shutil.copyfile(backup, new)
        new.chmod(OWNER_ONLY)
        _require_database(new, backup)
        flush(new)
        replaced = _move_away(file)
        os.replace(new, file)
        flush(file.parent)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}", code="restore.not_writable") from None
    finally:
        new.unlink(missing_ok=True)
    return replaced


def _require_database(copy: Path, backup: Path) -> None:
    """Raises InputError for a copy of what is no whole database of a collector or an issuer."""
    try:
        with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            ours = "SELECT 1 FROM sqlite_master WHERE name IN (?, ?)"
            is_ours = connection.execute(ours, TABLES).fetchone() is not None
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        raise InputError(f"{backup} is no backup: {error}", code="restore.not_database") from None
    if not is_ours:
        raise InputError(f"{backup} is no backup of ldpkit's", code="restore.not_ours")
    if verdict != "ok":
        raise InputError(f"{backup} is damaged: {verdict}", code="restore.damaged")


def _move_away(file: Path) -> Path | None:
    """Give a database another name, and its log with it: SQLite goes by names. None where there is none."""
    replaced = free_name(file)
    # The file first: after a crash between there is no database, rather than one without its log.
    for ending in ENDINGS:
        if beside(file, ending).exists():
            os.replace(beside(file, ending), replaced.with_name(replaced.name + ending))
    beside(file, "-shm").unlink(missing_ok=True)
    return replaced if replaced.exists() else None


def _run_psql(database: Database, backup: Path) -> None:
    try:
        with database.engine.connect() as connection:
            tables = inspect(connection).get_table_names()
    except SQLAlchemyError as error:
        raise InputError(
            f"cannot use {database.shown}: {one_line(getattr(error, 'orig', error))}",
            code="restore.unreachable",
        ) from None
    finally:
        database.engine.dispose()
    if tables:
        raise InputError(
            f"{database.shown} has tables: name an empty database, or empty this one first",
            code="restore.has_tables",
        )
    options = ["--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={backup}"]
    command, environment = postgresql_call("psql", database.url, *options)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"psql failed: {one_line(Exception(done.stderr))}", code="restore.psql_failed")
