"""What a dataset has and the database has no more: withdrawn reports leave it, others only where one says so.

Reports also leave a database when they expire, or when a backup of before they came takes its place: then a
dataset may be all that is left of them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

import pyarrow as pa
from pyarrow.parquet import ParquetFile

from collector.exports.layout import PART, Manifest, Part, folder_of
from collector.exports.store import PIECE, Store
from collector.storage import queries
from collector.storage.archived import stored_counts, withdrawn_counts
from collector.storage.database import Database
from collector.storage.emptying import fates_of
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted

IDS_AT_ONCE = 10_000
MOST_IN_MEMORY = 4 << 20
# Of the days that an error names.
MOST_DAYS = 5
# And of the files.
MOST_FILES = 3


class Gone(NamedTuple):
    """What left a dataset. withdrawn, forgotten: reports; nobody withdrew the latter, and the database has
    them no more. files: how many were deleted."""

    withdrawn: int = 0
    forgotten: int = 0
    files: int = 0

    def plus(self, other: Gone) -> Gone:
        """Both."""
        return Gone(*map(sum, zip(self, other, strict=True)))


class Place(NamedTuple):
    """Where a study's dataset lies, and its number in the database."""

    store: Store
    study: str
    number: int


@dataclass
class Keeper:
    """Looks again before a file of an export is replaced or deleted. forget_before: an order's."""

    database: Database
    place: Place
    forget_before: date | None

    def require_exportable(self) -> None:
        """Raises InputError where the study was archived or deleted since: the files may be all there is."""
        with self.database.read() as session:
            state = queries.study_state(session, self.place.study)
        refuse_gone(state, self.place.study, self.place.store.shown(folder_of(self.place.study)))

    def leaving(self, path: str, new: IO[bytes] | None) -> Gone:
        """The reports that leave the dataset with a file. new: what takes its place, None for nothing.

        Raises InputError as `require_exportable`, and where a report would that nobody withdrew or gave up.
        """
        self.require_exportable()
        found = _found(self.database, self.place, _missing(self.place, path, new))
        day = key_of(path)[1]
        if found.forgotten and (self.forget_before is None or day >= self.forget_before):
            raise _refusal(self.place, Counter({day: found.forgotten}), "their file was left as it is")
        return found


def refuse_gone(state: queries.StudyState | None, study_id: str, left: str = "") -> None:
    """Raises InputError where a study's reports are not in the database any more. left: where files are."""
    if state is not None and state.deleted:
        more = f", and {left} may still have reports of it, which nobody else deletes" if left else ""
        raise InputError(
            f"{study_id} was deleted: there is nothing to export{more}", code="export.study_deleted"
        )
    if state is not None and state.archived is not None:
        raise InputError(
            f"the reports of {study_id} are archived in {state.archived}: take them there",
            code="export.study_archived",
        )


def refuse_losses(database: Database, place: Place, before: Manifest, forget_before: date | None) -> None:
    """Raises InputError where days of a dataset have lost reports in the database that nobody withdrew.

    By counts, so that it is known before anything is written; `Keeper` looks at each report. Also where links
    lie in it.
    """
    place.store.refuse_links(folder_of(place.study))
    with database.read() as session:
        now = Counter(stored_counts(session, place.number))
        had = counts_of(before.parts)
        known = now + Counter(withdrawn_counts(session, place.number)) if had - now else now
    there = place.store.sizes(folder_of(place.study)) if had - known else {}
    short = {key for key in had - known if forget_before is None or key[1] >= forget_before}
    lost: Counter[date] = Counter()
    away: list[str] = []
    for part in before.parts:
        key = key_of(part.path)
        if key in short and part.path not in there:
            away.append(part.path)
        elif key in short:
            ids = _ids(place, part.path)
            lost[key[1]] += part.reports if ids is None else _found(database, place, ids).forgotten
    if away:
        raise _away(place, away)
    if lost := +lost:
        raise _refusal(place, lost, "nothing was written")


def key_of(path: str) -> tuple[int, date]:
    """The version and the day of a file of reports."""
    found = PART.fullmatch(path)
    assert found is not None
    return int(found[1]), date.fromisoformat(found[2])


def counts_of(parts: Iterable[Part]) -> Counter[tuple[int, date]]:
    """How many reports of each version and day these files have."""
    found: Counter[tuple[int, date]] = Counter()
    for part in parts:
        found[key_of(part.path)] += part.reports
    return found


def _away(place: Place, paths: list[str]) -> InputError:
    folder = place.store.shown(folder_of(place.study))
    named = ", ".join(paths[:MOST_FILES]) + (", …" if len(paths) > MOST_FILES else "")
    after = max(key_of(path)[1] for path in paths) + timedelta(1)
    return InputError(
        f"{folder} lacks {counted(len(paths), 'file')} ({named}) with reports that the database has no more: "
        "nothing was written. Put back what was there, or, if you deleted it as they expired, say so: "
        f"`ldpkit export --format parquet --forget-before {after}`",
        code="export.files_missing",
    )


def _refusal(place: Place, lost: Counter[date], outcome: str) -> InputError:
    folder = place.store.shown(folder_of(place.study))
    days = ", ".join(f"{number} of {day}" for day, number in sorted(lost.items())[:MOST_DAYS])
    more = f" and {counted(len(lost) - MOST_DAYS, 'more day')}" if len(lost) > MOST_DAYS else ""
    after = max(lost) + timedelta(1)
    return InputError(
        f"{folder} has {counted(lost.total(), 'report')} that the database has no more and nobody withdrew "
        f"({days}{more}): they expired, or it was restored from an older backup; {outcome}. Export to "
        f"another folder, or delete them here too: `ldpkit export --format parquet --forget-before {after}`",
        code="export.reports_lost",
    )


def _found(database: Database, place: Place, missing: list[bytes]) -> Gone:
    """What became of the reports with these ids in the database."""
    withdrawn = forgotten = 0
    for at in range(0, len(missing), IDS_AT_ONCE):
        some = missing[at : at + IDS_AT_ONCE]
        with database.read() as session:
            found = fates_of(session, place.number, some)
        withdrawn += found.withdrawn
        forgotten += found.lost
    return Gone(withdrawn, forgotten)


def _missing(place: Place, path: str, new: IO[bytes] | None) -> list[bytes]:
    """The ids of a file's reports that are not in what takes its place; none where it cannot be read."""
    old = _ids(place, path)
    if old is None:
        return []
    kept = set() if new is None else set(_column(new))
    if new is not None:
        new.seek(0)
    return [report_id for report_id in old if report_id not in kept]


def _ids(place: Place, path: str) -> list[bytes] | None:
    """The ids of a file's reports; None where it is damaged. Raises as a store does."""
    with SpooledTemporaryFile(MOST_IN_MEMORY) as copy:
        with place.store.reading(f"{folder_of(place.study)}/{path}") as file:
            shutil.copyfileobj(file, copy, PIECE)
        try:
            return _column(copy)
        except (pa.ArrowException, OSError, ValueError, LookupError):
            return None


def _column(file: IO[bytes]) -> list[bytes]:
    """The ids of an open file."""
    file.seek(0)
    return [bytes.fromhex(one) for one in ParquetFile(file).read(["report_id"]).column(0).to_pylist()]
