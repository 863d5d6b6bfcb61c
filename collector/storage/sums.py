"""The running summary's rows: whole numbers that add up, kept in the transactions that store reports.

Several processes may write at once, so each has its own row (a slot) for each version. The summary is the sum
of the rows. A row may go below zero if one process takes back reports that another added.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table, bindparam, delete, select, update
from sqlalchemy.orm import Session

from collector.storage.models import SumsRow
from collector.storage.queries import insert_new

Sums = NDArray[np.int64]

SUMS = cast(Table, SumsRow.__table__)
SLOTS = 16
ON_DISK = np.dtype("<i8")
KEY = ("study", "version", "slot")
# Built once: every commit reads and writes one row for each version it has reports of.
_ROW = [SUMS.c[name] == bindparam(f"the_{name}") for name in KEY]
READ_ROW = select(SUMS.c.sums).where(*_ROW).with_for_update()
WRITE_ROW = update(SUMS).where(*_ROW)


class WrongSumsError(Exception):
    """The kept sums have the wrong length for their version: only a recount can correct them."""


def add_sums(session: Session, study: int, version: int, change: Sums) -> None:
    """Add to a version's sums, in this process's slot. Raises WrongSumsError."""
    connection = session.connection()
    slot = _slot(connection)
    row = {"the_study": study, "the_version": version, "the_slot": slot}
    held = connection.execute(READ_ROW, row).scalar()
    if held is None:
        new = {
            "study": study,
            "version": version,
            "slot": slot,
            "sums": bytes(len(change) * ON_DISK.itemsize),
        }
        connection.execute(insert_new(session, SUMS, KEY).values(**new))
        # Another process with the same slot may have made the row, and added to it, meanwhile.
        held = connection.execute(READ_ROW, row).scalar_one()
    sums = _read(held, len(change)) + change
    connection.execute(WRITE_ROW, {**row, "sums": sums.astype(ON_DISK).tobytes()})


def read_sums(session: Session, study: int, version: int, size: int) -> Sums:
    """Return a version's current sums over all slots, or `size` zeros if it has none yet.

    Raises WrongSumsError.
    """
    rows = select(SUMS.c.sums).where(SUMS.c.study == study, SUMS.c.version == version)
    total = np.zeros(size, dtype=np.int64)
    for (sums,) in session.connection().execute(rows):
        total += _read(sums, size)
    return total


def _read(held: bytes, size: int) -> Sums:
    """Return a row's sums. Without this check, NumPy would add a row of length 1 to all sums."""
    if len(held) != size * ON_DISK.itemsize:
        raise WrongSumsError(f"{len(held)} bytes instead of {size * ON_DISK.itemsize}")
    return np.frombuffer(held, dtype=ON_DISK)


def forget_sums(session: Session, studies: Iterable[int]) -> None:
    """Delete the sums of studies, by their numbers."""
    for study in studies:
        session.connection().execute(delete(SUMS).where(SUMS.c.study == study))


def _slot(connection: Connection) -> int:
    """Return this process's slot. SQLite has one writer at a time, so one row is enough."""
    return 0 if connection.dialect.name == "sqlite" else os.getpid() % SLOTS
