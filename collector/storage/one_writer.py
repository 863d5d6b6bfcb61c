"""One at a time writes a study's dataset, or has its reports leave the database for an archive or with one.

Whoever holds the lock has it until it ends, however that is: PostgreSQL keeps it for a connection, and the
machine's kernel for an open file beside SQLite's.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, text

from collector.storage import queries
from collector.storage.database import Database, sqlite_file
from ldp_client.documents.errors import InputError

# Any number that no other program on the same PostgreSQL database locks pairs with.
LOCKS = 1_295_077_441
# PostgreSQL notices within a minute that the machine is gone which held a lock, and does not end a quiet one.
LASTING = {
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "idle_session_timeout": "0",
}
# Not every server has each.
SET = text("SELECT set_config(name, :value, false) FROM pg_settings WHERE name = :name")


class Turn(Protocol):
    """A study's lock, which this process holds."""

    def require(self) -> None:
        """Raises InputError, or SQLAlchemyError, where it is held no more: somebody else may have it."""


@contextmanager
def only_writer(database: Database, study_id: str) -> Iterator[Turn]:
    """Hold a study's lock. Raises InputError where another process does, and for an unknown study."""
    with database.read() as session:
        state = queries.study_state(session, study_id)
    if state is None:
        raise InputError(
            f"there is no study {study_id[:64]!r} in {database.shown}", code="study.unknown_in_database"
        )
    file = sqlite_file(str(database.url))
    if file is None:
        with _locked_on_server(database, study_id, state.number) as turn:
            yield turn
    else:
        with _locked_beside(file, study_id, state.number) as turn:
            yield turn


def _refusal(study_id: str) -> InputError:
    return InputError(
        f"another `ldpkit export --format parquet`, `ldpkit admin archive` or `delete-study` of {study_id} "
        "runs just now: nothing was done, run it again when that has ended",
        code="study.already_being_written",
    )


class _OnServer:
    """Held by a connection, which dies with it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def require(self) -> None:
        self._connection.execute(text("SELECT 1"))


@contextmanager
def _locked_on_server(database: Database, study_id: str, number: int) -> Iterator[Turn]:
    with database.engine.connect() as pooled:
        connection = pooled.execution_options(isolation_level="AUTOCOMMIT")
        # The pool's few are for the work.
        connection.detach()
        if connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one():
            raise InputError(
                f"{database.shown} is a replica, where no lock keeps others from the same dataset: name the "
                "server that it follows",
                code="database.is_replica",
            )
        for name, value in LASTING.items():
            connection.execute(SET, {"name": name, "value": value})
        asked = text("SELECT pg_try_advisory_lock(:locks, :number)")
        if not connection.execute(asked, {"locks": LOCKS, "number": number}).scalar_one():
            raise _refusal(study_id)
        yield _OnServer(connection)


class _Beside:
    """Held by an open file, while that has its name."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self.handle = path, handle

    @property
    def is_ours(self) -> bool:
        """Whether who comes next finds this file."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self.handle))
        except FileNotFoundError:
            return False

    def require(self) -> None:
        if not self.is_ours:
            raise InputError(
                f"{self._path} was deleted meanwhile, which kept others away: run it again",
                code="database.lock_file_deleted",
            )

    def end(self) -> None:
        """Let the next one have it."""
        if self.is_ours:
            self._path.unlink(missing_ok=True)
        os.close(self.handle)


@contextmanager
def _locked_beside(file: Path, study_id: str, number: int) -> Iterator[Turn]:
    # By the name that every process comes to.
    whole = file.resolve()
    turn = _taken(whole.with_name(f"{whole.name}-writing-{number}"), whole, study_id)
    try:
        yield turn
    finally:
        turn.end()


def _taken(path: Path, database: Path, study_id: str) -> _Beside:
    while True:
        turn = _Beside(path, _opened(path, database))
        try:
            fcntl.flock(turn.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(turn.handle)
            raise _refusal(study_id) from None
        # Who had it before deletes it, perhaps since it was opened.
        if turn.is_ours:
            return turn
        os.close(turn.handle)


def _opened(path: Path, database: Path) -> int:
    """The lock's file, with the rights of the database's: root may have made it. Raises InputError."""
    try:
        rights = os.stat(database)
        handle = os.open(path, os.O_RDONLY | os.O_CREAT, rights.st_mode & 0o666)
        if os.geteuid() == 0:
            with suppress(OSError):
                os.fchown(handle, rights.st_uid, rights.st_gid)
    except OSError as error:
        raise InputError(
            f"cannot make {path}, which keeps others away meanwhile: {error.strerror}",
            code="database.lock_file_not_creatable",
        ) from None
    return handle
