"""Copy a database in use as of one moment, and replace a database with such a copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import URL, Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from collector.db import OWNER_ONLY, Database, one_line
from collector.migrations import COLLECTOR, Schema, check
from collector.store import partition_names
from collector.wal import COLLECTORS, TABLES, beside, fold, free_name, has_foreign_log, locked, owned_as, size
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import STREAM, name_new

# Tables that a dump sorts, and their keys.
ORDERED = {
    "reports": "study, id",
    "tickets": "study, hash",
    "spent_tickets": "study, tag",
    "codes": "hash",
}
COMPLETE = b"-- PostgreSQL database dump complete"
# A dump's parts: before the rows, and after them.
PARTS = 2


def back_up(database: Database, path: Path, schema: Schema = COLLECTOR, mark: str = "") -> None:
    """Write a copy to a new file, whole or not at all: an SQLite file, or SQL for psql.

    An earlier release's database can be copied too, before it is migrated. mark: a statement that only the
    copy gets, for a database of this release.
    The copy has reports in the order of their ids. Only its owner may read it. Raises InputError when it
    cannot be made, and if the file exists.
    """
    if str(path) == STREAM:
        raise UsageError(
            "--out -: a backup cannot be written to standard output. Name a new file",
            code="backup.to_standard_output",
        )
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: no such folder", code="backup.folder_missing")
    if path.exists():
        raise InputError(
            f"{path} is there already: a backup never takes the place of another", code="backup.file_exists"
        )
    check(database, or_earlier=not mark, schema=schema)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ldpkit-") as folder:
            made = Path(folder) / path.name
            if database.engine.dialect.name == "sqlite":
                copy_sqlite(Path(str(database.url.database)), made, mark)
            else:
                _dump_postgresql(database, made, mark)
            made.chmod(OWNER_ONLY)
            flush(made)
            name_new(str(made), path)
        flush(path.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", code="backup.not_writable") from None


def copy_sqlite(source: Path, path: Path, mark: str = "") -> None:
    """Copy an SQLite database at one moment, and check the copy. Raises InputError.

    mark: a statement that only the copy gets.
    """
    try:
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            # Reads one snapshot, however long it takes, and does not copy deleted contents.
            connection.execute("VACUUM INTO ?", (str(path),))
        with closing(sqlite3.connect(path)) as connection:
            # No log belongs to this file: see wal.py.
            connection.execute("PRAGMA user_version = 0")
            connection.execute(mark)
            connection.commit()
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        raise InputError(f"cannot copy {source}: {error}", code="backup.copy_failed") from None
    if verdict != "ok":
        raise InputError(f"the copy of {source} is damaged: {verdict}", code="backup.copy_damaged")


def _dump_postgresql(database: Database, path: Path, mark: str) -> None:
    """Write pg_dump's SQL of one snapshot, with ORDERED's rows sorted: pg_dump keeps arrival order."""
    try:
        with database.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            schema = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
            ordered = {
                name: ORDERED[name] for name in inspect(connection).get_table_names() if name in ORDERED
            }
            tables = [f'"{schema}"."{name}"' for name in ordered]
            connection.rollback()
            # Lock before the snapshot: a later TRUNCATE would make the table empty in this snapshot too.
            connection.exec_driver_sql(f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE")
            # In another style a day before the 13th can be read with day and month swapped.
            connection.exec_driver_sql("SET DateStyle = ISO")
            snapshot = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
            with path.open("wb") as file:
                parts = [f'"{schema}"."{name}"' for name in partition_names(connection)]
                apart = [f"--exclude-table-data={name}" for name in (*tables, *parts)]
                options = [f"--snapshot={snapshot}", *apart]
                _pg_dump(database.url, file, "--section=pre-data", "--section=data", *options)
                rows = [
                    _copy_rows(connection, name, key, file) for name, key in zip(tables, ordered.values())
                ]
                _pg_dump(database.url, file, "--section=post-data", *options)
    except SQLAlchemyError as error:
        raise InputError(
            f"cannot copy {database.shown}: {one_line(error)}", code="backup.dump_failed"
        ) from None
    finally:
        database.engine.dispose()
    if _rows_of(path, tables) != rows:
        raise InputError(f"the copy of {database.shown} is damaged", code="backup.dump_damaged")
    if mark:
        # pg_dump leaves an empty search path.
        with path.open("a", encoding="utf-8") as file:
            file.write(f'\nSET search_path = "{schema}";\n{mark};\n')


def _copy_rows(connection: Connection, table: str, key: str, file: BinaryIO) -> int:
    """Write a table's rows in the order of its key. Return how many."""
    file.write(f"\nCOPY {table} FROM stdin;\n".encode())
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor:
        with cursor.copy(f"COPY (SELECT * FROM {table} ORDER BY {key}) TO STDOUT") as rows:
            for some in rows:
                file.write(some)
        count: int = cursor.rowcount
    file.write(b"\\.\n")
    file.flush()
    return count


def _rows_of(path: Path, tables: Sequence[str]) -> list[int]:
    """Return how many rows a dump has of each table; an empty list if its end is missing."""
    counts = dict.fromkeys((f"COPY {name} FROM stdin;\n".encode() for name in tables), 0)
    table, last = None, b""
    with path.open("rb") as file:
        for line in file:
            if line in counts:
                table = line
            elif line == b"\\.\n":
                table = None
            elif table is not None:
                counts[table] += 1
            last = line if line.startswith(b"-- ") else last
    return list(counts.values()) if last.strip() == COMPLETE else []


def is_whole_dump(path: Path) -> bool:
    """Return True if a file has both parts of a dump to their ends: psql accepts a truncated dump."""
    complete, is_rows = 0, False
    with path.open("rb") as file:
        for line in file:
            if is_rows:
                is_rows = line != b"\\.\n"
            elif line.startswith(b"COPY ") and line.endswith(b"FROM stdin;\n"):
                is_rows = True
            else:
                complete += line.strip() == COMPLETE
    return complete == PARTS and not is_rows


def _pg_dump(url: URL, file: BinaryIO, *options: str) -> None:
    """Append the output of pg_dump. Raises InputError."""
    # Restoring must not need this database's roles. The rows between are in UTF-8.
    roles = ["--no-owner", "--no-privileges", "--encoding=UTF8"]
    command, environment = postgresql_call("pg_dump", url, *roles, *options)
    file.flush()
    done = subprocess.run(
        command, env=environment, stdout=file, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise InputError(f"pg_dump failed: {one_line(Exception(done.stderr))}", code="backup.pg_dump_failed")


def postgresql_call(name: str, url: URL, *options: str) -> tuple[list[str], dict[str, str] | None]:
    """Return the command line of a PostgreSQL program, and its environment. Raises InputError."""
    program = shutil.which(name)
    if program is None:
        raise InputError(
            f"this needs {name}: install PostgreSQL's client programs", code="backup.needs_postgresql_program"
        )
    from psycopg.conninfo import make_conninfo

    _, parameters = url.get_dialect()().create_connect_args(url)
    # In the environment: every user of the machine can read arguments.
    password = parameters.pop("password", None)
    if "sslpassword" in parameters:
        advice = "libpq has no environment variable for it: use a key without password (`openssl pkey`)"
        raise InputError(
            f"sslpassword would be an argument of {name}, which all users can read; {advice}",
            code="backup.password_exposed",
        )
    environment = {**os.environ, "PGPASSWORD": password} if password else None
    return [program, "--no-password", f"--dbname={make_conninfo(**parameters)}", *options], environment


def flush(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
