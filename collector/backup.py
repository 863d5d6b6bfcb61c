"""Copy a database in use, as of one moment, into an SQLite file; and replace a database with such a copy.

A copy has reports in the order of their ids, and no bytes of deleted reports.
"""

import os
import sqlite3
import tempfile
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, select, text

from collector.db import OWNER_ONLY, Database, sqlite_url
from collector.migrations import check, make, reporting_errors
from collector.models import Base
from collector.store import make_partition
from collector.wal import empty_log, flush, free_name, has_foreign_log, locked, sidecar, size
from ldp_client.documents.errors import InputError, UsageError
from schemas.disk import STREAM, name_new, refuse_existing

# Files that SQLite keeps next to a database, and would write into another file of its name.
LOGS = ("-wal", "-journal")
ROWS_AT_ONCE = 1000
# An issuer looks for it on the day on which the copy is restored.
MARK = "UPDATE collector SET is_copy = TRUE"


def back_up(database: Database, path: Path) -> None:
    """Write a copy to a new SQLite file, whole or not at all. Only its owner may read it.

    An earlier release's SQLite file can be copied too, before it is migrated.

    Args:
        database: SQLite or PostgreSQL.
        path: the new file.

    Raises:
        InputError: the copy cannot be made, or the file exists.
    """
    if str(path) == STREAM:
        raise UsageError(
            "--out -: a backup cannot be written to standard output. Name a new file",
            code="backup.to_standard_output",
        )
    refuse_existing(path)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ldpkit-") as folder:
            copy = Path(folder) / path.name
            check(database, or_earlier=database.file is not None)
            if database.file is not None:
                _copy_file(database.file, copy)
            else:
                whole = Path(folder) / "whole"
                make(Database(sqlite_url(whole), 1), partial(_copy_rows, database))
                _copy_file(whole, copy)
            copy.chmod(OWNER_ONLY)
            flush(copy)
            name_new(str(copy), path)
        flush(path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", code="backup.not_writable") from None


def restore(database: Database, backup: Path) -> Path | None:
    """Replace a database with a backup, whole or not at all. Return the replaced file's new name.

    The replaced SQLite file first takes in its own log; another file's log is renamed. PostgreSQL's database
    must be empty.

    Args:
        database: what to replace.
        backup: a file of `back_up`.

    Raises:
        InputError: it is no such backup, or a server works on the file.
    """
    if not backup.is_file():
        raise InputError(f"there is no file {backup}", code="restore.no_file")
    for log in [sidecar(backup, ending) for ending in LOGS]:
        if size(log):
            raise InputError(
                f"{backup} has a log, {log.name}: back up both with `ldpkit backup`, and restore that",
                code="restore.has_log",
            )
    file = None if database.file is None else database.file.resolve()
    try:
        with tempfile.TemporaryDirectory(dir=file and file.parent, prefix=".ldpkit-") as folder:
            new = Path(folder) / "new"
            _copy_file(backup, new)
            if file is None:
                source = Database(sqlite_url(new), 1)
                check(source)
                make(database, partial(_copy_rows, source))
                return None
            with locked(file) if file.exists() else nullcontext():
                return _replace(file, new)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}", code="restore.not_writable") from None


def _replace(file: Path, new: Path) -> Path | None:
    # 1. SQLite goes by names: no log may stay with the name.
    if file.exists() and not has_foreign_log(file) and (why := empty_log(file)):
        raise InputError(
            f"{file} cannot take in its log: {why}. If it is damaged, move it and its -wal away first",
            code="restore.log_in_use",
        )
    for log in [sidecar(file, ending) for ending in LOGS]:
        if size(log):
            os.replace(log, free_name(log))
    sidecar(file, "-shm").unlink(missing_ok=True)
    # 2. The new file gets the rights of the old one's owner, even if root restores it.
    new.chmod(OWNER_ONLY)
    rights = os.stat(file if file.exists() else file.parent)
    if os.geteuid() == 0:
        os.chown(new, rights.st_uid, rights.st_gid)
    flush(new)
    # 3. After each step, there is no database, or a whole one.
    replaced = free_name(file) if file.exists() else None
    if replaced is not None:
        os.replace(file, replaced)
    os.replace(new, file)
    flush(file.parent)
    return replaced


def _copy_file(source: Path, path: Path) -> None:
    """Copy a collector's SQLite database at one moment, mark the copy, and check it. Raises InputError."""
    try:
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            # Reads one snapshot, however long it takes, and does not copy deleted contents.
            connection.execute("VACUUM INTO ?", (str(path),))
        with closing(sqlite3.connect(path)) as connection:
            # No log belongs to this file: see wal.py.
            connection.execute("PRAGMA user_version = 0")
            connection.execute(MARK)
            connection.commit()
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        raise InputError(
            f"cannot copy {source}: {error}: it must be a collector's database", code="backup.copy_failed"
        ) from None
    if verdict != "ok":
        raise InputError(f"the copy of {source} is damaged: {verdict}", code="backup.copy_damaged")


def _copy_rows(source: Database, target: Connection) -> None:
    """Copy all rows into new tables, in the order of their keys, from one snapshot. Raises InputError."""
    with reporting_errors(source), source.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ")
        for table in Base.metadata.sorted_tables:
            # Migrations have written the rows that new tables need.
            if target.scalar(select(func.count()).select_from(table)):
                target.execute(delete(table))
            ordered = select(table).order_by(*table.primary_key.columns)
            rows = connection.execute(ordered.execution_options(yield_per=ROWS_AT_ONCE)).mappings()
            for part in rows.partitions():
                target.execute(insert(table), [dict(row) for row in part])
            if table.name == "studies" and target.dialect.name == "postgresql":
                _make_partitions(target)


def _make_partitions(connection: Connection) -> None:
    """Make the tables of the studies' reports, and let the next study's number be a new one."""
    for number in connection.scalars(text("SELECT number FROM studies")).all():
        make_partition(connection, number)
    connection.execute(
        text("SELECT setval(pg_get_serial_sequence('studies', 'number'), max(number)) FROM studies")
    )
