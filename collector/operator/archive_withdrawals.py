"""Taking withdrawn reports out of a study's archive.

Which they are was noted when their devices asked. First it is seen that the files are the archive, and all of
it: an id that is in none of them was made up, or its report left before. Then the database's counts and
running summary lose them, once, then the files do, and then their ids are kept as those of withdrawn reports,
so that the devices get their receipts. Whatever is killed in between is done when it is run again: what the
dataset is to become stands beside it until it is.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from datetime import date
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pyarrow.parquet import ParquetFile
from sqlalchemy.orm import Session

from collector.exports.dataset import finish, manifest_there
from collector.exports.keeping import counts_of, key_of
from collector.exports.layout import PART, UNFINISHED, Manifest, bucket_of, folder_of
from collector.exports.parts import Growing
from collector.exports.store import Store
from collector.operator.archive_checks import manifest_of, require_counts, require_files
from collector.operator.fitting import forget_fitted
from collector.reports.rules import Rules
from collector.reports.running_summary import take_back_reports
from collector.storage import queries
from collector.storage.archived import add_archived, end_waiting, mark_taken, waiting_withdrawals
from collector.storage.database import Database
from collector.storage.packing import PackedReport
from collector.storage.upkeep import settled_day, utc_today
from ldp_client.documents.errors import InputError
from schemas import Report

T = TypeVar("T")
# Anybody can ask for what was never there: few enough that uploads hardly wait.
AT_ONCE = 1000


class Change(NamedTuple):
    """A file of the archive without what was withdrawn. lost: the reports that it had."""

    path: str
    kept: list[PackedReport]
    lost: list[PackedReport]

    @property
    def place(self) -> tuple[int, date]:
        """Its version and day."""
        return key_of(self.path)


def take_out(
    database: Database, store: Store, study_id: str, rules: Mapping[int, Rules], manifest: Manifest
) -> tuple[Manifest, int]:
    """Delete from an archive what was withdrawn since; what it then has, and how many reports went.

    Raises InputError, before anything is done, unless it is the archive and all of it.
    """
    with database.read() as session:
        state = queries.study_state(session, study_id)
        assert state is not None
        waiting = waiting_withdrawals(session, state.number)
    changes = list(_changes(store, manifest, rules, waiting.keys())) if waiting else []
    require_counts(database, store, study_id, _counted(manifest, changes, waiting))
    require_files(store, manifest, {change.path for change in changes})
    if not waiting:
        finish(store, manifest)
        return manifest, 0
    for change in changes:
        for lost in _paged(change.lost):
            uncount = partial(_uncount, study_id=study_id, rules=rules, place=change.place, lost=lost)
            _act_and_rest(database, uncount)
    manifest = _rewrite(store, manifest, rules, changes)
    for ids in _paged(sorted(waiting)):
        _act_and_rest(database, partial(_acknowledge, study_id=study_id, ids=ids))
    return manifest, sum(len(change.lost) for change in changes)


def _paged(several: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(several), AT_ONCE):
        yield several[at : at + AT_ONCE]


def _act_and_rest(database: Database, action: Callable[[Session], None]) -> None:
    """Do it in a transaction of its own; uploads have as much time as it took."""
    begun = time.monotonic()
    database.act(action)
    time.sleep(time.monotonic() - begun)


def _counted(
    manifest: Manifest, changes: Sequence[Change], waiting: Mapping[bytes, bool]
) -> Counter[tuple[int, date]]:
    """How many reports of each version and day are counted if this is the archive: those that stay, and those
    that are not counted out yet. waiting: whether each is."""
    changed = {change.path for change in changes}
    found = counts_of(part for part in manifest.parts if part.path not in changed)
    for change in changes:
        found[change.place] += len(change.kept) + sum(not waiting[one.id] for one in change.lost)
    return found


def _changes(
    store: Store, manifest: Manifest, rules: Mapping[int, Rules], wanted: Set[bytes]
) -> Iterator[Change]:
    """The files that have any of these reports, by their ids."""
    buckets = {bucket_of(report_id, manifest.buckets) for report_id in wanted}
    # Where the last change was interrupted a file is as it is to be, or as it was.
    known = {(part.path, part.bytes, part.sha256) for part in manifest.parts}
    if before := manifest_there(store, manifest.study):
        known |= {(part.path, part.bytes, part.sha256) for part in before.parts}
    for part in manifest.parts:
        place = PART.fullmatch(part.path)
        assert place is not None
        if int(place[3], 16) not in buckets:
            continue
        path = f"{folder_of(manifest.study)}/{part.path}"
        if (part.path, *(store.digest(path) or ())) not in known:
            raise InputError(f"{store.shown(path)} is not what was written there: no withdrawal was done")
        with store.reading(path) as file:
            content = ParquetFile(file)
            ids = content.read(columns=["report_id"]).column(0).to_pylist()
            if wanted.isdisjoint(map(bytes.fromhex, ids)):
                continue
            reports = _packed(content.read().to_pylist(), rules[int(place[1])])
        lost = [one for one in reports if one.id in wanted]
        yield Change(part.path, [one for one in reports if one.id not in wanted], lost)


def _packed(rows: list[dict[str, Any]], rules: Rules) -> list[PackedReport]:
    """A file's reports as the database had them."""
    found = []
    for row in rows:
        payloads = {name: payload for name, payload in row["payloads"].items() if payload is not None}
        public = {name: value for name, value in (row.get("public") or {}).items() if value is not None}
        named = {name: row[name] for name in ("study", "version", "digest")}
        found.append(rules.pack(Report(id=row["report_id"], payloads=payloads, public=public, **named)))
    return found


def _uncount(
    session: Session,
    study_id: str,
    rules: Mapping[int, Rules],
    place: tuple[int, date],
    lost: Sequence[PackedReport],
) -> None:
    """Have counts and running summary lose what is about to leave the archive, each report once."""
    row = queries.locked_study(session, study_id)
    assert row is not None
    were = mark_taken(session, row.number, [one.id for one in lost])
    counted = [one for one in lost if one.id in were]
    if counted:
        take_back_reports(session, lambda _, version: rules[version], study_id, row.number, counted)
        add_archived(session, row.number, {place: -len(counted)})
        forget_fitted(session, row.number)


def _rewrite(store: Store, manifest: Manifest, rules: Mapping[int, Rules], changes: list[Change]) -> Manifest:
    """Write the files anew, and what the dataset then has; a file without a report is none any more."""
    folder = folder_of(manifest.study)
    if manifest_of(store, manifest.study) != manifest:
        raise InputError(f"{store.shown(folder)} was changed meanwhile, by another run of this: run it again")
    parts = {part.path: part for part in manifest.parts}
    with ExitStack() as stack:
        made = {}
        for change in changes:
            parts.pop(change.path)
            if change.kept:
                growing = Growing(stack, manifest.study, rules[change.place[0]])
                growing.add(change.kept)
                made[change.path] = growing.finish(change.path)
        parts.update((path, written.part) for path, written in made.items())
        after = manifest._replace(parts=tuple(sorted(parts.values())))
        store.write(f"{folder}/{UNFINISHED}", after.to_json().encode())
        for path, written in made.items():
            store.write_from(f"{folder}/{path}", written.content, written.part.bytes)
    finish(store, after)
    return after


def _acknowledge(session: Session, study_id: str, ids: Sequence[bytes]) -> None:
    """From now on their devices hear that they are gone."""
    row = queries.locked_study(session, study_id)
    assert row is not None
    end_waiting(session, row.number, settled_day(session, utc_today()), ids)
