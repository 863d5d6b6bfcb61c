"""Archiving a closed study: its reports go into a dataset, and leave the database once they are surely there.

Nothing is dropped before every file was read again from where it lies, and is what the database's rows make
at that time. What is killed at any moment is gone on with by the same command. The running summary, the
counts by version and day and the ids of withdrawn reports stay; the study stays closed for good. A device
that withdraws later gets no receipt before its report has left the archive: see archive_withdrawals.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from collector.exports.dataset import (
    TEMPORARY,
    Order,
    check_bucket,
    export_from,
    finish,
    manifest_there,
    plan_of,
    require_part,
    rules_of,
)
from collector.exports.keeping import Keeper, Place, counts_of
from collector.exports.layout import MANIFEST, PART, UNFINISHED, Manifest, Part, document_name, folder_of
from collector.exports.parts import UndoneError
from collector.exports.store import Store, trimmed
from collector.exports.unfinished import Buckets, mark, pending_manifest
from collector.exports.workers import each_bucket
from collector.operator.archive_checks import (
    manifest_of,
    require_as_counted,
    require_counts,
    require_names,
    require_own,
)
from collector.operator.archive_restored import drop_page, require_archived, take_over
from collector.operator.archive_withdrawals import take_out
from collector.operator.overview import unfinished_deletion
from collector.operator.retention import end_study
from collector.reports.rules import Rules
from collector.storage import audit_log, queries
from collector.storage.archived import (
    Counts,
    archived_counts,
    forget_archive,
    stored_counts,
    withdrawn_counts,
)
from collector.storage.database import Database
from collector.storage.one_writer import Turn, only_writer
from collector.storage.sums import forget_sums
from ldp_client.documents.errors import InputError, LdpkitError
from ldp_client.words.text import counted
from summaries.engines.addresses import DISKS

# Reports may be withdrawn while they are exported and checked.
MOST_TRIES = 5
Tell = Callable[[str, int, int], None]


class Archived(NamedTuple):
    """What archiving did. dropped: reports that left the database. withdrawn: that left the archive."""

    manifest: Manifest
    dropped: int
    withdrawn: int


class Standing(NamedTuple):
    """How a study stands before it is archived. address: where it is archived already, None for nowhere.

    stored: reports in the database. archived: those in the archive alone.
    """

    number: int
    address: str | None
    stored: int
    archived: int


def settled(order: Order) -> Order:
    """The order with an address that means the same in every folder. Raises InputError for an empty one."""
    trimmed(order.address)
    protocol, separator, path = order.address.partition("://")
    if separator and protocol not in DISKS:
        return replace(order, address=trimmed(order.address))
    return replace(order, address=os.path.abspath(path if separator else order.address))


def standing_of(database: Database, study_id: str, address: str, is_moved: bool = False) -> Standing:
    """How a study stands. Raises InputError where it cannot be archived there.

    is_moved: whether its archive may be known by another address.
    """
    with database.read() as session:
        state = queries.study_state(session, study_id)
        if state is None:
            raise InputError(
                f"there is no study {study_id[:64]!r} in {database.shown}", code="archive.unknown_study"
            )
        if state.deleted:
            said = f"{study_id} was deleted: there is nothing to archive"
            raise InputError(
                unfinished_deletion(study_id) if state.archived else said, code="archive.deletion_unfinished"
            )
        if not state.closed:
            raise InputError(
                f"{study_id} still takes reports: `ldpkit close {study_id}` first", code="archive.study_open"
            )
        if state.archived not in (None, address) and not is_moved:
            raise InputError(
                f"{study_id} is archived in {state.archived}: name that address, or add --moved if the "
                f"archive lies in {address} now",
                code="archive.at_other_address",
            )
        if state.archived is None and is_moved:
            raise InputError(
                f"{study_id} is not archived: leave --moved out", code="archive.not_archived_not_moved"
            )
        stored = sum(stored_counts(session, state.number).values())
        archived = sum(archived_counts(session, state.number).values())
    if stored and state.archived not in (None, address):
        raise InputError(
            f"{counted(stored, 'report')} of {study_id} are still in {database.shown}: put the archive back "
            f"in {state.archived}, and run this without --moved first",
            code="archive.reports_in_database",
        )
    for rules in _rules(database, study_id, state.number).values():
        _require_archivable(study_id, rules)
    return Standing(state.number, state.archived, stored, archived)


def _require_archivable(study_id: str, rules: Rules) -> None:
    version = f"version {rules.study.version} of {study_id}"
    if rules.study.route is not None:
        raise InputError(
            f"{study_id} is a secure sum: nobody can read its shares alone", code="archive.secure_sum"
        )
    if rules.study.retention_days is not None:
        days = counted(rules.study.retention_days, "day")
        raise InputError(
            f"{version} says that its reports are kept for {days}: no archive deletes them then, "
            "so export it",
            code="archive.retention",
        )


def _rules(database: Database, study_id: str, number: int) -> dict[int, Rules]:
    with database.read() as session:
        digests = queries.document_digests(session, number)
    return rules_of(database, study_id, digests)


def archive(
    database: Database,
    order: Order,
    tell: Tell = lambda _what, _done, _of: None,
    is_moved: bool = False,
    is_restored: bool = False,
) -> Archived:
    """Archive a study, go on with that, or take out of its archive what was withdrawn since.

    order: settled. is_moved: whether the archive of one that is archived elsewhere was moved there.
    is_restored: whether the database was restored and the archive, which went on, is right. Raises as
    `export_dataset`; and InputError for a study that cannot be archived, and where a file is not what was
    written. Nothing is dropped before all were read again.
    """
    with only_writer(database, order.study) as turn:
        standing = standing_of(database, order.study, order.address, is_moved)
        if is_restored:
            require_archived(database, order.study, standing.address)
            rules = _rules(database, order.study, standing.number)
            read = partial(tell, "read again")
            take_over(database, Store(order.address), order.study, rules, turn, read, is_moved)
            standing = standing_of(database, order.study, order.address, is_moved)
        if standing.address in (None, order.address):
            return _archive(database, order, standing, turn, tell)
        return _go_on_elsewhere(database, order, standing)


def _archive(database: Database, order: Order, standing: Standing, turn: Turn, tell: Tell) -> Archived:
    store = Store(order.address)
    manifest = None if standing.address is None else manifest_of(store, order.study)
    if manifest is not None:
        require_own(database, store, manifest)
    if manifest is not None and not manifest.archive:
        # All rows are still here: the files are to be what they make, not what this manifest says.
        turn.require()
        database.act(partial(_take_back, study_id=order.study, why="nothing had left the database"))
        manifest = None
    if manifest is None:
        # From now on its reports may be nowhere else: no other database is to write there.
        manifest = _move(database, order, store, turn, tell)._replace(archive=True)
        finish(store, manifest)
    elif standing.stored:
        _require_there(database, order, store, manifest, tell)
    dropped = 0
    while now := database.act(partial(drop_page, study_id=order.study)):
        turn.require()
        dropped += now
        tell("left the database", dropped, max(standing.stored, dropped))
    rules = _rules(database, order.study, standing.number)
    manifest, withdrawn = take_out(database, store, order.study, rules, manifest)
    return Archived(manifest, dropped, withdrawn)


def _go_on_elsewhere(database: Database, order: Order, standing: Standing) -> Archived:
    """Take what lies at another address for the archive once it is seen to be all of it, and go on there."""
    store = Store(order.address)
    manifest = manifest_of(store, order.study)
    require_own(database, store, manifest, is_moved=True)

    def note(session: Session) -> None:
        row = queries.locked_study(session, order.study)
        assert row is not None
        row.archived = order.address
        line = f"moved from {standing.address} to {order.address}"
        audit_log.record(session, audit_log.AT_DATABASE, "archive", order.study, line)

    rules = _rules(database, order.study, standing.number)
    manifest, withdrawn = take_out(database, store, order.study, rules, manifest, partial(database.act, note))
    return Archived(manifest, 0, withdrawn)


def _require_there(database: Database, order: Order, store: Store, manifest: Manifest, tell: Tell) -> None:
    """Raises InputError unless the archive has what the database counts, as it was written."""
    require_counts(database, store, order.study, counts_of(manifest.parts))
    _require_all(store, manifest, tell)


def _move(database: Database, order: Order, store: Store, turn: Turn, tell: Tell) -> Manifest:
    """Write the dataset, read all of it again, and have the study archived from then on."""
    for _ in range(MOST_TRIES):
        gone = _gone(database, order.study)
        exported = export_from(database, order, store, turn, partial(tell, "written"))
        manifest = exported.manifest
        if _is_whole(database, order, store, manifest, tell):
            turn.require()
            begin = partial(_begin, order=order, manifest=manifest, gone=gone)
            if database.act(begin):
                _look_again(database, order, store, manifest, tell)
                return manifest
    raise InputError(
        f"reports of {order.study} are withdrawn just now: nothing was dropped, run it again",
        code="archive.withdrawals_under_way",
    )


def _look_again(database: Database, order: Order, store: Store, manifest: Manifest, tell: Tell) -> None:
    """Read the files once more: an export that began before may have written until the study was archived.

    Raises as `_require_there`, and then the study is not archived any more.
    """
    try:
        _require_there(database, order, store, manifest, tell)
    except LdpkitError:
        database.act(partial(_take_back, study_id=order.study, why="its files are not what was written"))
        raise


def _take_back(session: Session, study_id: str, why: str) -> None:
    """Have a study be none that is archived, unless reports are in the archive alone."""
    row = queries.locked_study(session, study_id)
    assert row is not None
    if not archived_counts(session, row.number):
        row.archived = None
        audit_log.record(session, audit_log.AT_DATABASE, "archive", study_id, f"taken back: {why}")


def _is_whole(database: Database, order: Order, store: Store, manifest: Manifest, tell: Tell) -> bool:
    """Whether the files are what the database makes now; False where that has changed since."""
    parts: list[Part] = []
    # In its own buckets: of what came or went since, plan_of might choose others.
    plan = plan_of(database, replace(order, buckets=manifest.buckets), manifest)
    try:
        check = partial(check_bucket, {part.path: part for part in manifest.parts})
        for found in each_bucket(order, plan, check):
            if found.changed:
                return False
            parts += found.parts
            done = sum(part.reports for part in parts)
            tell("read again", done, max(manifest.reports, done))
    except UndoneError:
        raise
    except InputError:
        # What is damaged is no finished dataset, while it is this export's.
        Keeper(database, Place(store, order.study, plan.scope.number), None).require_exportable()
        mark(store, order.study, Buckets(manifest.buckets, manifest.buckets))
        store.remove(f"{folder_of(order.study)}/{MANIFEST}")
        raise
    return tuple(sorted(parts)) == manifest.parts


def _require_all(store: Store, manifest: Manifest, tell: Tell) -> None:
    """Raises InputError unless every file is what the manifest says."""
    folder, done = folder_of(manifest.study), 0
    for part in manifest.parts:
        require_part(store, folder, part)
        done += part.reports
        tell("read again", done, max(manifest.reports, 1))


def _gone(database: Database, study_id: str) -> Counts:
    """How many reports of each version and day were withdrawn."""
    with database.read() as session:
        state = queries.study_state(session, study_id)
        return {} if state is None else withdrawn_counts(session, state.number)


def _begin(session: Session, order: Order, manifest: Manifest, gone: Counts) -> bool:
    """Have a study be archived; False where its rows changed since they were read.

    gone: what was withdrawn before. Where somebody opened the study and closed it again, as many reports may
    have come as were withdrawn.
    """
    row = queries.locked_study(session, order.study)
    if row is None or not row.closed or row.deleted:
        left = Store(order.address).shown(folder_of(order.study))
        raise InputError(
            f"{order.study} was opened again or deleted meanwhile: nothing was dropped, and {left} has a "
            "copy of its reports",
            code="archive.study_changed_meanwhile",
        )
    if row.archived is not None:
        raise InputError(
            f"{order.study} was archived in {row.archived} meanwhile: nothing was dropped",
            code="archive.archived_meanwhile",
        )
    rows = stored_counts(session, row.number), withdrawn_counts(session, row.number)
    if rows != (counts_of(manifest.parts), gone):
        return False
    row.archived, row.final = order.address, True
    line = f"{counted(manifest.reports, 'report')} to {order.address}"
    audit_log.record(session, audit_log.AT_DATABASE, "archive", order.study, line)
    return True


def delete_archive(database: Database, study_id: str, address: str) -> int:
    """Delete a study's archive, its counts and its summary; how many reports it had.

    The caller holds the study's lock. Raises InputError or TransferError where the archive cannot be reached:
    then it is still archived.
    """
    with database.read() as session:
        state = queries.study_state(session, study_id)
        versions = queries.published_versions(session, study_id)
    if state is None or state.archived != address:
        raise InputError(
            f"{study_id} is not archived in {address} any more: nothing was deleted",
            code="archive.not_there_any_more",
        )
    store, folder = Store(address), folder_of(study_id)
    if state.deleted and store.is_away():
        raise InputError(
            f"there is no {address}: mount it, or make an empty folder, and run this again",
            code="archive.address_missing",
        )
    # Once it is deleted all files are gone, and what lies there now may be somebody else's.
    if not state.deleted:
        _delete_files(database, store, study_id, versions)
        _delete_rows(database, study_id)
    if store.read(f"{folder}/{UNFINISHED}") == b"":
        store.remove(f"{folder}/{UNFINISHED}")
    store.remove_empty(folder)
    return database.act(partial(_forget, study_id=study_id))


def _delete_files(database: Database, store: Store, study_id: str, versions: Iterable[int]) -> None:
    """Delete an archive's files but for the mark that it is being deleted, which says whose it is.

    Once they are gone the mark is empty: it had the days on which people reported, and could be left behind.
    """
    folder = folder_of(study_id)
    ours = set(map(document_name, versions))
    unfinished = f"{folder}/{UNFINISHED}"
    manifest = pending_manifest(store, study_id) or manifest_there(store, study_id)
    if manifest is not None:
        require_own(database, store, manifest)
        require_as_counted(database, store, manifest)
        require_names(store, manifest)
        store.write(unfinished, manifest._replace(archive=True).to_json().encode())
    elif store.read(unfinished) != b"":
        where = store.shown(f"{folder}/{MANIFEST}")
        raise InputError(
            f"there is no {where}: the archive is away, perhaps not mounted, and nothing was deleted. If it "
            f"or its place was moved: `ldpkit admin archive {study_id} --to ADDRESS --moved` first. If you "
            f"deleted it yourself, put an empty file {store.shown(unfinished)} there",
            code="archive.away",
        )
    # First what makes it a dataset.
    store.remove(f"{folder}/{MANIFEST}")
    for path in store.paths(folder):
        is_temporary = path.rpartition("/")[2].startswith(TEMPORARY)
        if path in ours or is_temporary or PART.fullmatch(path):
            store.remove(f"{folder}/{path}")
    # Their names say on which days reports came, and so does the mark.
    store.remove_empty(folder)
    store.write(unfinished, b"")


def _delete_rows(database: Database, study_id: str) -> None:
    """Have a study be deleted, while its archive's address still stands: its mark is to go yet."""
    while database.act(partial(drop_page, study_id=study_id)):
        pass

    def act(session: Session) -> None:
        row = queries.locked_study(session, study_id)
        assert row is not None
        end_study(session, row)
        forget_sums(session, [row.number])

    database.act(act)


def _forget(session: Session, study_id: str) -> int:
    """Have a study's archive be none; how many reports it had."""
    row = queries.locked_study(session, study_id)
    assert row is not None
    deleted = sum(archived_counts(session, row.number).values())
    forget_archive(session, row.number)
    return deleted
