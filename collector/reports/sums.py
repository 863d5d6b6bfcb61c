"""The summary of each version, always exact: it changes in the transaction that changes the reports.

A version's sums are whole numbers that add up: see rules.py. Several processes may write at once, so each has
its own row (a slot) for each version. A row may go below zero if one process takes back reports that another
added.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np
from sqlalchemy import Connection, Table, bindparam, delete, select, update
from sqlalchemy.orm import Session

from collector import store
from collector.errors import WrongSumsError
from collector.models import SumsRow
from collector.reports.rules import Rules, Sums, require_same
from collector.store import Prepared, insert_new

FindRules = Callable[[str, int], Rules]
SUMS = cast(Table, SumsRow.__table__)
SLOTS = 16
ON_DISK = np.dtype("<i8")
KEY = ("study", "version", "slot")
_ROW = [SUMS.c[name] == bindparam(f"the_{name}") for name in KEY]
READ_ROW = Prepared(select(SUMS.c.sums).where(*_ROW).with_for_update())
WRITE_ROW = Prepared(update(SUMS).where(*_ROW).values(sums=bindparam("the_sums")))


def add_reports(
    session: Session, find: FindRules, study_id: str, study: int, reports: Sequence[store.StoredRow]
) -> None:
    """Count reports that this transaction stores. study: its number."""
    for rules, payloads in _by_version(find, study_id, reports):
        add(session, study, rules.study.version, rules.tally.count(payloads))


def take_back_reports(
    session: Session, find: FindRules, study_id: str, study: int, reports: Sequence[store.StoredRow]
) -> None:
    """Undo the counting of reports that this transaction deletes. Withdrawn reports no longer count."""
    for rules, payloads in _by_version(find, study_id, reports):
        require_same(store.document_digests(session, study), [rules])
        add(session, study, rules.study.version, -rules.tally.count(payloads))


def _by_version(
    find: FindRules, study_id: str, reports: Sequence[store.StoredRow]
) -> Iterator[tuple[Rules, Sequence[bytes]]]:
    """Yield each version's rules and the payloads to count, without withdrawn reports.

    Versions are in ascending order, which prevents deadlocks between processes.
    """
    for version in sorted({version for _, version, payload in reports if payload}):
        rules = find(study_id, version)
        if rules.tally.is_kept:
            yield rules, [payload for _, number, payload in reports if payload and number == version]


def add(session: Session, study: int, version: int, change: Sums) -> None:
    """Add to a version's sums, in this process's slot. Raises WrongSumsError."""
    connection = session.connection()
    slot = _slot(connection)
    row = {"the_study": study, "the_version": version, "the_slot": slot}
    held = READ_ROW.rows(session, **row)
    if not held:
        key, zeros = dict(zip(KEY, (study, version, slot))), bytes(change.nbytes)
        connection.execute(insert_new(session, SUMS, KEY).values(**key, sums=zeros))
        # Another process with the same slot may have made the row, and added to it, meanwhile.
        held = READ_ROW.rows(session, **row)
    sums = _parse(held[0][0], len(change)) + change
    WRITE_ROW.rows(session, **row, the_sums=sums.astype(ON_DISK).tobytes())


def read(session: Session, study: int, version: int, size: int) -> Sums:
    """Return a version's current sums over all slots, or `size` zeros if it has none yet.

    Raises WrongSumsError.
    """
    rows = select(SUMS.c.sums).where(SUMS.c.study == study, SUMS.c.version == version)
    total = np.zeros(size, dtype=np.int64)
    for (sums,) in session.connection().execute(rows):
        total += _parse(sums, size)
    return total


def _parse(held: bytes, size: int) -> Sums:
    """Return a row's sums. Without this check, NumPy would add a row of length 1 to all sums."""
    if len(held) != size * ON_DISK.itemsize:
        what = f"{len(held)} bytes instead of {size * ON_DISK.itemsize}"
        raise WrongSumsError(f"a running summary is damaged ({what}): restore a backup (`ldpkit restore`)")
    return np.frombuffer(held, dtype=ON_DISK)


def forget(session: Session, study: int) -> None:
    """Delete the sums of a study, by its number."""
    session.connection().execute(delete(SUMS).where(SUMS.c.study == study))


def _slot(connection: Connection) -> int:
    """Return this process's slot. SQLite has one writer at a time, so one row is enough."""
    return 0 if connection.dialect.name == "sqlite" else os.getpid() % SLOTS
