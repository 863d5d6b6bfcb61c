"""Writing a dataset of a study's reports, straight from the database, in several processes.

Every file is made of the database's rows again, and written only where it is missing or another one: what an
interrupted call left is gone on with, and a second call after a withdrawal replaces the one file that had it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector.exports.keeping import Gone, Keeper, Place, refuse_gone, refuse_losses
from collector.exports.last_day import last_day_over
from collector.exports.layout import (
    MANIFEST,
    MOST_BUCKETS,
    PART,
    UNFINISHED,
    Manifest,
    Part,
    choose_buckets,
    document_name,
    folder_of,
    is_bucket_count,
    least_buckets,
)
from collector.exports.nesting import refuse_nested
from collector.exports.parts import Scope, Written, made_parts, require_same_deletions
from collector.exports.store import Store
from collector.exports.unfinished import Buckets, mark, pending_buckets, pending_manifest
from collector.exports.workers import each_bucket
from collector.reports.rules import RuleBook, Rules, require_same
from collector.storage import audit_log, queries
from collector.storage.archived import Counts, stored_counts
from collector.storage.database import Database, one_line
from collector.storage.migrating import opened
from collector.storage.one_writer import Turn, only_writer
from ldp_client.documents.errors import InputError, UsageError

# How `replacing` calls a file that is not whole yet.
TEMPORARY = ".ldpkit-"
LOGGER = logging.getLogger("collector")


@dataclass(frozen=True)
class Order:
    """What is to be exported, and where to: all that a process needs to know.

    database, busy_timeout: as in the settings. buckets: None chooses. today: the day in UTC. with_today: also
    what comes today, of a study that takes reports. processes: None chooses. forget_before: from days before
    that one also reports leave the dataset that the database has no more though nobody withdrew them.
    """

    database: str
    busy_timeout: float
    study: str
    address: str
    today: date
    buckets: int | None = None
    with_today: bool = False
    processes: int | None = None
    forget_before: date | None = None


class Done(NamedTuple):
    """A bucket's files. changed: how many of them had to be written, or are other than they were known."""

    parts: list[Part]
    changed: int
    gone: Gone = Gone()


class Exported(NamedTuple):
    """What an export did. written: how many files had to be. is_open: whether reports may still come. gone:
    what left the dataset."""

    manifest: Manifest
    written: int
    is_open: bool
    gone: Gone


@dataclass
class Plan:
    """What an order comes to. total: how many reports it has. former: as `Buckets`."""

    scope: Scope
    is_open: bool
    total: int
    former: int


def export_dataset(order: Order, tell: Callable[[int, int], None] = lambda _done, _of: None) -> Exported:
    """Write a study's dataset, or bring it up to date.

    tell: is told how many reports are in files, of how many.
    Raises InputError and its kind before anything is written where that cannot be; later, InputError or
    TransferError of what failed, and the same call again goes on with what is there.
    """
    store = Store(order.address)
    with opened(order.database, order.busy_timeout) as database, only_writer(database, order.study) as turn:
        return export_from(database, order, store, turn, tell, partial(_note, database, order.study))


def export_from(
    database: Database,
    order: Order,
    store: Store,
    turn: Turn,
    tell: Callable[[int, int], None] = lambda _done, _of: None,
    begin: Callable[[], None] = lambda: None,
) -> Exported:
    """The same from a database that is open, whose study's turn this process has.

    begin: is called where nothing is in the way, before anything is written.
    """
    if order.buckets is not None and not is_bucket_count(order.buckets):
        raise UsageError(
            f"--buckets must be a power of two of at most {MOST_BUCKETS}, is {order.buckets}",
            code="export.wrong_bucket_count",
        )
    refuse_nested(store)
    folder = folder_of(order.study)
    with database.read() as session:
        identity = queries.identity(session).hex()
    before = manifest_there(store, order.study)
    plan = plan_of(database, order, before)
    _refuse_others(store, order.study, before, identity)
    scope = plan.scope
    keeper = Keeper(database, Place(store, order.study, scope.number), order.forget_before)
    if before is not None:
        refuse_losses(database, keeper.place, before, order.forget_before)
    begin()
    # That it can be written is known now.
    mark(store, order.study, Buckets(plan.former, scope.buckets))
    for rules in scope.rules.values():
        _write_if_other(store, f"{folder}/{document_name(rules.study.version)}", rules.study.canonical())
    parts: list[Part] = []
    written, gone = 0, Gone()
    # What took a file's reports is not to be lost by a disk that has that file's successor.
    for found in each_bucket(order, plan, write_bucket, partial(store.settle, folder)):
        turn.require()
        _require_no_deletion(database, scope)
        parts += found.parts
        written += found.changed
        gone = gone.plus(found.gone)
        done = sum(part.reports for part in parts)
        tell(done, max(plan.total, done))
    documents = {rules.study.digest: version for version, rules in scope.rules.items()}
    through = None if scope.through is None else scope.through.isoformat()
    manifest = Manifest(order.study, documents, tuple(sorted(parts)), scope.buckets, through, identity)
    turn.require()
    return Exported(manifest, written, plan.is_open, gone.plus(finish(store, manifest, keeper)))


def _require_no_deletion(database: Database, scope: Scope) -> None:
    """Raises InputError where reports were deleted since the export began: some in no bucket's turn."""
    with database.read() as session:
        require_same_deletions(queries.study_state(session, scope.study), scope)


def _note(database: Database, study_id: str) -> None:
    """Have a line of today say that a study's reports are written out, as one does of an export by a key."""

    def act(session: Session) -> None:
        if not audit_log.is_said_today(session, audit_log.AT_DATABASE, "export", study_id, ""):
            audit_log.record(session, audit_log.AT_DATABASE, "export", study_id)

    try:
        database.act(act)
    except SQLAlchemyError as error:
        LOGGER.warning("a line of the audit log cannot be written: %s", one_line(error))


def finish(store: Store, manifest: Manifest, keeper: Keeper | None = None) -> Gone:
    """Leave no file of reports that is none of the dataset's, and write its manifest; what went with them.

    keeper: of an export, whose files may be all that is left of what they have.
    """
    folder = folder_of(manifest.study)
    if keeper is not None:
        keeper.require_exportable()
    wanted = {part.path for part in manifest.parts}
    there = store.paths(folder)
    for path in there:
        # What was being written when somebody killed it; it may hold what was withdrawn since.
        if path.rpartition("/")[2].startswith(TEMPORARY):
            store.remove(f"{folder}/{path}")
    stale = [path for path in there if PART.fullmatch(path) and path not in wanted]
    gone = Gone(files=len(stale))
    for path in stale:
        gone = gone.plus(Gone() if keeper is None else keeper.leaving(path, None))
    if stale and manifest.archive:
        # Killed behind this one it would have no manifest, and nobody makes an archive's again.
        store.write(f"{folder}/{UNFINISHED}", manifest.to_json().encode())
    if stale:
        store.remove(f"{folder}/{MANIFEST}")
    for path in stale:
        store.remove(f"{folder}/{path}")
    # Of a day whose reports were all withdrawn the name would still say that there were some.
    store.remove_empty(folder)
    store.settle(folder)
    _write_if_other(store, f"{folder}/{MANIFEST}", manifest.to_json().encode())
    store.remove(f"{folder}/{UNFINISHED}")
    store.settle(folder)
    return gone


def _refuse_others(store: Store, study_id: str, before: Manifest | None, identity: str) -> None:
    """Raises InputError where an export would replace what is another database's, or is nowhere else."""
    found = pending_manifest(store, study_id) or before
    if found is None or not (found.archive or found.collector not in (None, identity)):
        return
    what = "an archive" if found.archive else "a dataset"
    raise InputError(
        f"{store.shown(folder_of(study_id))} is {what} of another database, or of this one before it was "
        "restored from a backup: name another place",
        code="export.dataset_of_other_database",
    )


def read_manifest(store: Store, study_id: str) -> Manifest:
    """The manifest of a finished dataset. Raises InputError where there is none."""
    found = manifest_there(store, study_id)
    if found is None:
        where = store.shown(f"{folder_of(study_id)}/{MANIFEST}")
        raise InputError(
            f"there is no {where}: no dataset of {study_id} is there, or it is not finished",
            code="export.no_dataset",
        )
    return found


def manifest_there(store: Store, study_id: str) -> Manifest | None:
    """The same, but None where there is none."""
    path = f"{folder_of(study_id)}/{MANIFEST}"
    text, where = store.read(path), store.shown(path)
    if text is None:
        return None
    found = Manifest.from_json(text, where)
    if found.study != study_id:
        raise InputError(
            f"{where} is of the study {found.study[:64]!r}", code="export.dataset_of_other_study"
        )
    return found


def _write_if_other(store: Store, path: str, content: bytes) -> None:
    if store.read(path) != content:
        store.write(path, content)


def plan_of(database: Database, order: Order, before: Manifest | None) -> Plan:
    """What there is to do. Raises InputError where there is nothing that could be exported."""
    with database.read() as session:
        state = queries.study_state(session, order.study)
        if state is None:
            raise InputError(
                f"there is no study {order.study[:64]!r} in {database.shown}", code="export.unknown_study"
            )
        place, is_open = Place(Store(order.address), order.study, state.number), not state.closed
        refuse_gone(state, order.study, place.store.shown(folder_of(order.study)) if before else "")
        is_cut = is_open and not order.with_today
        through = last_day_over(session, place, order.today, before) if is_cut else None
        counts = stored_counts(session, state.number, through)
        digests = queries.document_digests(session, state.number)
    rules = rules_of(database, order.study, digests)
    if any(one.study.route is not None for one in rules.values()):
        raise InputError(
            f"{order.study} is a secure sum: nobody can read its shares alone", code="export.secure_sum"
        )
    if before is not None and any(digests.get(number) != name for name, number in before.documents.items()):
        where = f"{order.address}/{folder_of(order.study)}"
        raise InputError(
            f"{where} has another collector's study of this name: name another place",
            code="export.study_of_other_collector",
        )
    former, buckets = _buckets_of(place, order.buckets, before, counts)
    left = place.store.shown(folder_of(order.study))
    scope = Scope(order.study, state.number, rules, buckets, through, state.deletions, left)
    return Plan(scope, is_open, sum(counts.values()), former)


def _buckets_of(place: Place, wanted: int | None, before: Manifest | None, counts: Counts) -> Buckets:
    """How many buckets the files there have, and are to have. Raises InputError where that cannot be."""
    pending = None if before is not None else pending_buckets(place.store, place.study)
    if pending is not None and pending.is_change:
        # Some files have their new reports, others not: from there the way on is to the end alone.
        if wanted not in (None, pending.after):
            where = place.store.shown(folder_of(place.study))
            # Some other folder would take this call: no UsageError.
            raise InputError(
                f"{where} was not finished with --buckets {pending.after}: run that again, which ends it, or "
                "name another place",
                code="export.other_buckets",
            )
        return pending
    former = before.buckets if before is not None else pending.after if pending is not None else None
    # A dataset that grew gets more of them: with few, files are large, and few processes can share them.
    buckets = wanted or max(former or 1, choose_buckets(counts.values()))
    if former is None:
        former = least_buckets(place.store.paths(folder_of(place.study))) or buckets
    return Buckets(former, buckets)


def rules_of(database: Database, study_id: str, digests: dict[int, str]) -> dict[int, Rules]:
    """The rules of every version, which are the documents with these digests."""
    book = RuleBook(database)
    rules = {version: book.find(study_id, version) for version in sorted(digests)}
    require_same(digests, rules.values())
    return rules


def write_bucket(order: Order, buckets: int, through: date | None, bucket: int) -> Done:
    """Make a bucket's files, and write those that are not there."""
    parts, written, gone = [], 0, Gone()
    with opened(order.database, order.busy_timeout) as database:
        scope = _scope_of(database, order, buckets, through)
        place = Place(Store(order.address), order.study, scope.number)
        keeper = Keeper(database, place, order.forget_before)
        for made in made_parts(database, scope, bucket):
            parts.append(made.part)
            left = _put(keeper, made)
            written += left is not None
            gone = gone.plus(left or Gone())
    return Done(parts, written, gone)


def check_bucket(
    known: dict[str, Part], order: Order, buckets: int, through: date | None, bucket: int
) -> Done:
    """Make a bucket's files and read those that are there.

    Raises InputError where a known one is not there as it was.
    """
    store, folder = Store(order.address), folder_of(order.study)
    parts, changed = [], 0
    with opened(order.database, order.busy_timeout) as database:
        for made in made_parts(database, _scope_of(database, order, buckets, through), bucket):
            parts.append(made.part)
            if known.get(made.part.path) == made.part:
                require_part(store, folder, made.part)
            else:
                changed += 1
    return Done(parts, changed)


def require_part(store: Store, folder: str, part: Part) -> None:
    """Raises InputError where a file is not what it was when it was written, or is away."""
    path = f"{folder}/{part.path}"
    if store.digest(path) != (part.bytes, part.sha256):
        raise InputError(
            f"{store.shown(path)} is not what was written there: no report was dropped",
            code="export.file_changed",
        )


def _scope_of(database: Database, order: Order, buckets: int, through: date | None) -> Scope:
    with database.read() as session:
        state = queries.study_state(session, order.study)
        assert state is not None
        digests = queries.document_digests(session, state.number)
    rules = rules_of(database, order.study, digests)
    left = Store(order.address).shown(folder_of(order.study))
    return Scope(order.study, state.number, rules, buckets, through, state.deletions, left)


def _put(keeper: Keeper, made: Written) -> Gone | None:
    """Write a file unless it is there; None where it was, else what left the dataset with what was there."""
    store, folder = keeper.place.store, folder_of(keeper.place.study)
    path = f"{folder}/{made.part.path}"
    # Not by its length alone: who exports again may do so as a file was found damaged.
    there = store.digest(path)
    if there == (made.part.bytes, made.part.sha256):
        return None
    if there is None:
        keeper.require_exportable()
        gone = Gone()
    else:
        gone = keeper.leaving(made.part.path, made.content)
        # It has another content on record.
        store.remove(f"{folder}/{MANIFEST}")
    store.write_from(path, made.content, made.part.bytes)
    return gone
