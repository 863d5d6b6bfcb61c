"""Replacing a database with a backup."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from sqlalchemy import inspect
from sqlalchemy.exc import SQLAlchemyError

from collector.storage.backup import copy_sqlite, flush, is_whole_dump, postgresql_call
from collector.storage.database import OWNER_ONLY, Database, one_line
from collector.storage.wal import (
    COLLECTORS,
    TABLES,
    beside,
    fold,
    free_name,
    has_foreign_log,
    locked,
    owned_as,
    size,
)
from ldp_client.documents.errors import InputError

WHOSE = {name: f"{whose}'s" for name, whose in zip(TABLES, ("a collector", "an issuer"), strict=True)}
# Files that SQLite keeps next to a database, and would write into another file of its name.
LOGS = ("-wal", "-journal")


def restore(database: Database, backup: Path, kind: str | None = COLLECTORS) -> Path | None:
    """Replace a database with a backup, whole or not at all. Return the replaced file's new name.

    The replaced SQLite file first takes in its own log; another file's log is renamed. PostgreSQL's
    database must be empty. kind: the backup must have this table, of TABLES; None for the table of the
    replaced file. Raises InputError for any other backup, and while a server works on the file.
    """
    if not backup.is_file():
        raise InputError(f"there is no file {backup}", code="restore.no_file")
    if database.engine.dialect.name == "postgresql":
        _run_psql(database, backup)
        return None
    for ending in LOGS:
        if size(beside(backup, ending)):
            raise InputError(
                f"{backup} has a log, {beside(backup, ending).name}: make a backup of both with "
                "`ldpkit backup --database`, and restore that",
                code="restore.has_log",
            )
    file = Path(str(database.url.database)).resolve()
    if not file.parent.is_dir() or (file.exists() and not file.is_file()):
        raise InputError(f"cannot write {file}: no such folder, or no file", code="restore.no_folder")
    with locked(file):
        return _take_place(backup, file, kind)


def _take_place(backup: Path, file: Path, kind: str | None) -> Path | None:
    folder = file.with_name(f"{file.name}.restoring")
    try:
        # Left by a killed restore.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        new = folder / file.name
        copy_sqlite(backup, new)
        _require_kind(new, backup, kind or _kind_of(file))
        new.chmod(OWNER_ONLY)
        owned_as(new, file)
        flush(new)
        replaced = _move_away(file)
        try:
            os.replace(new, file)
        except OSError:
            if replaced is not None:
                os.replace(replaced, file)
            raise
        flush(file.parent)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}", code="restore.not_writable") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return replaced


def _kind_of(file: Path) -> str | None:
    """Return the table that identifies a database's kind; None for another program's, or without a file."""
    if not file.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            ours = "SELECT name FROM sqlite_master WHERE name IN (?, ?)"
            found = connection.execute(ours, TABLES).fetchone()
    except sqlite3.Error:
        return None
    return None if found is None else str(found[0])


def _require_kind(copy: Path, backup: Path, wanted: str | None) -> None:
    found = _kind_of(copy)
    if found is None:
        raise InputError(f"{backup} is not a backup of ldpkit", code="restore.not_ours")
    if wanted not in (None, found):
        raise InputError(
            f"{backup} is {WHOSE[found]}: name the database that it is for with --database",
            code="restore.other_kind",
        )


def _move_away(file: Path) -> Path | None:
    """Rename a database's file, and remove its log: SQLite goes by names. Return None without a file."""
    if file.exists() and not has_foreign_log(file) and (why := fold(file)):
        raise InputError(f"{file} cannot take in its log: {why}", code="restore.log_in_use")
    for log in [beside(file, ending) for ending in LOGS]:
        if size(log):
            os.replace(log, free_name(log))
    beside(file, "-shm").unlink(missing_ok=True)
    if not file.exists():
        return None
    replaced = free_name(file)
    os.replace(file, replaced)
    return replaced


def _run_psql(database: Database, backup: Path) -> None:
    if not is_whole_dump(backup):
        raise InputError(f"{backup} is not a complete PostgreSQL backup", code="restore.dump_cut")
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
    options = ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={backup}"]
    command, environment = postgresql_call("psql", database.url, *options)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"psql failed: {one_line(Exception(done.stderr))}", code="restore.psql_failed")
