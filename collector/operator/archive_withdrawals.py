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
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile
from sqlalchemy.orm import Session

from collector.exports.dataset import finish, manifest_there
from collector.exports.keeping import counts_of, key_of
from collector.exports.layout import PART, UNFINISHED, Manifest, Part, bucket_of, folder_of
from collector.exports.parts import Growing, Written
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
    """A file of the archive that has what was withdrawn. gone: the ids of that, in the archive's words. part:
    what the file is without it; it is made again when it is written, so that there is one at a time. lost:
    the reports that it had."""

    path: str
    gone: pa.Array
    part: Part
    lost: list[PackedReport]

    @property
    def place(self) -> tuple[int, date]:
        """Its version and day."""
        return key_of(self.path)


def take_out(
    database: Database,
    store: Store,
    study_id: str,
    rules: Mapping[int, Rules],
    manifest: Manifest,
    begin: Callable[[], None] = lambda: None,
) -> tuple[Manifest, int]:
    """Delete from an archive what was withdrawn since; what it then has, and how many reports went.

    begin: is called once this is seen to be the archive, and all of it. Raises InputError, before that and
    before anything is done, where it is not.
    """
    with database.read() as session:
        state = queries.study_state(session, study_id)
        assert state is not None
        waiting = waiting_withdrawals(session, state.number)
    changes = list(_changes(store, manifest, rules, waiting.keys()))
    require_counts(database, store, study_id, _counted(manifest, changes, waiting))
    require_files(store, manifest, {change.path for change in changes})
    begin()
    if not waiting:
        finish(store, manifest)
        return manifest, 0
    taken = [one for one, is_taken in waiting.items() if is_taken]
    for change in changes:
        for lost in _paged(change.lost):
            uncount = partial(_uncount, study_id=study_id, rules=rules, place=change.place, lost=lost)
            _act_and_rest(database, uncount)
    manifest = _rewrite(store, manifest, rules, changes)
    for ids in _paged(sorted(waiting)):
        _act_and_rest(database, partial(_acknowledge, study_id=study_id, ids=ids))
    # Of a run that was killed those too that it had counted out: their files may be without them.
    return manifest, len({one.id for change in changes for one in change.lost}.union(taken))


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
        found[change.place] += change.part.reports + sum(not waiting[one.id] for one in change.lost)
    return found


def _changes(
    store: Store, manifest: Manifest, rules: Mapping[int, Rules], wanted: Set[bytes]
) -> Iterator[Change]:
    """The files that have any of these reports, by their ids."""
    by_bucket: dict[int, list[str]] = {}
    for report_id in wanted:
        by_bucket.setdefault(bucket_of(report_id, manifest.buckets), []).append(report_id.hex())
    gone = {bucket: pa.array(ids) for bucket, ids in by_bucket.items()}
    # Where the last change was interrupted a file is as it is to be, or as it was.
    known = {(part.path, part.bytes, part.sha256) for part in manifest.parts}
    if wanted and (before := manifest_there(store, manifest.study)):
        known |= {(part.path, part.bytes, part.sha256) for part in before.parts}
    for part in manifest.parts:
        place = PART.fullmatch(part.path)
        assert place is not None
        bucket = int(place[3], 16)
        if bucket not in gone:
            continue
        path = f"{folder_of(manifest.study)}/{part.path}"
        if (part.path, *(store.digest(path) or ())) not in known:
            raise InputError(
                f"{store.shown(path)} is not what was written there: no withdrawal was done",
                code="archive.withdrawal_file_changed",
            )
        if _has_any(store, path, gone[bucket]):
            with _without(store, manifest.study, part.path, rules[int(place[1])], gone[bucket]) as (
                new,
                lost,
            ):
                change = Change(part.path, gone[bucket], new.part, lost)
            yield change


def _has_any(store: Store, path: str, gone: pa.Array) -> bool:
    """Whether a file has any of these reports."""
    return any(
        pc.any(pc.is_in(group["report_id"], gone)).as_py() for group in groups_of(store, path, ["report_id"])
    )


def groups_of(store: Store, path: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """A file's reports, so many at once as were written at once."""
    with store.reading(path) as file:
        content = ParquetFile(file)
        for number in range(content.num_row_groups):
            yield content.read_row_group(number, columns, use_threads=False)


@contextmanager
def _without(
    store: Store, study_id: str, path: str, rules: Rules, gone: pa.Array
) -> Iterator[tuple[Written, list[PackedReport]]]:
    """A file without these reports, and those of them that it has."""
    lost = []
    with ExitStack() as stack:
        growing = Growing(stack, study_id, rules)
        for group in groups_of(store, f"{folder_of(study_id)}/{path}"):
            is_gone = pc.is_in(group["report_id"], gone)
            lost += packed_rows(group.filter(is_gone).to_pylist(), rules)
            growing.add_columns(group.filter(pc.invert(is_gone)))
        yield growing.finish(path), lost


def packed_rows(rows: list[dict[str, Any]], rules: Rules) -> list[PackedReport]:
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
        raise InputError(
            f"{store.shown(folder)} was changed meanwhile, by another run of this: run it again",
            code="archive.changed_meanwhile",
        )
    parts = {part.path: part for part in manifest.parts}
    parts.update((change.path, change.part) for change in changes)
    after = manifest._replace(parts=tuple(sorted(part for part in parts.values() if part.reports)))
    store.write(f"{folder}/{UNFINISHED}", after.to_json().encode())
    for path, gone, part, _ in changes:
        if not part.reports:
            continue
        with _without(store, manifest.study, path, rules[key_of(path)[0]], gone) as (new, _):
            if new.part != part:
                raise InputError(
                    f"{store.shown(folder)}/{path} was changed meanwhile: run it again",
                    code="archive.file_changed_meanwhile",
                )
            store.write_from(f"{folder}/{path}", new.content, part.bytes)
    finish(store, after)
    return after


def _acknowledge(session: Session, study_id: str, ids: Sequence[bytes]) -> None:
    """From now on their devices hear that they are gone."""
    row = queries.locked_study(session, study_id)
    assert row is not None
    end_waiting(session, row.number, settled_day(session, utc_today()), ids)
