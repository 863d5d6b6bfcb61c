"""Copying a database that is in use, as it was at one moment."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL

from collector.storage.database import Database, one_line
from collector.storage.migrating import check
from schemas.errors import InputError


def back_up(database: Database, path: Path) -> None:
    """Write a copy to `path`, whole or not at all: an SQLite file, or a dump for pg_restore.

    Raises InputError when it cannot be made.
    """
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: no such folder")
    if path.exists():
        raise InputError(f"{path} is there already: a backup never takes the place of another")
    check(database)
    copy = _copy_sqlite if database.engine.dialect.name == "sqlite" else _dump_postgresql
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ldpkit-") as folder:
        made = Path(folder) / path.name
        copy(database.url, made)
        _flush(made)
        made.replace(path)
    _flush(path.parent)


def _copy_sqlite(url: URL, path: Path) -> None:
    source = Path(str(url.database))
    try:
        with closing(sqlite3.connect(source)) as connection:
            # Reads one snapshot, however long it takes, and leaves deleted contents behind.
            connection.execute("VACUUM INTO ?", (str(path),))
        with closing(sqlite3.connect(path)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check").fetchone()
    except sqlite3.Error as error:
        raise InputError(f"cannot copy {source}: {error}") from None
    if verdict != "ok":
        raise InputError(f"the copy of {source} is damaged: {verdict}")


def _dump_postgresql(url: URL, path: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise InputError("a backup of PostgreSQL needs pg_dump: install PostgreSQL's client programs")
    from psycopg.conninfo import make_conninfo

    _, parameters = url.get_dialect()().create_connect_args(url)
    # In the environment: arguments can be read by every user of the machine.
    password = parameters.pop("password", None)
    environment = {**os.environ, "PGPASSWORD": password} if password else None
    options = [
        "--format=custom",
        "--no-password",
        f"--file={path}",
        f"--dbname={make_conninfo(**parameters)}",
    ]
    command = [program, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"pg_dump failed: {one_line(Exception(done.stderr))}")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
