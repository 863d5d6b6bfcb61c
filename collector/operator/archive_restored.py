"""Going on with an archive after the database was restored from a backup that is older than it.

What left the archive since the backup is still counted here, and so the archive looks like another's. No
command tells this database from a copy beside the one that goes on with the archive: somebody says so, once.
Then every file is read: the archive may lack reports that are counted, and have none that is not, nor one
whose withdrawal was acknowledged. From then on counts and running summary are the archive's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from collector.exports.dataset import finish, manifest_there, read_manifest
from collector.exports.keeping import key_of
from collector.exports.layout import Manifest, Part, folder_of
from collector.exports.store import Store
from collector.exports.unfinished import pending_manifest
from collector.operator.archive_checks import (
    UNDONE,
    counts_held,
    is_fewer,
    require_files,
    require_own,
    unlike,
)
from collector.operator.archive_withdrawals import groups_of, packed_rows
from collector.operator.fitting import forget_fitted
from collector.operator.retention import REPORTS_AT_ONCE
from collector.reports.rules import Rules
from collector.storage import audit_log, queries
from collector.storage.archived import drop_reports, set_archived, waiting_withdrawals, withdrawn_ids
from collector.storage.database import Database
from collector.storage.one_writer import Turn
from collector.storage.packing import PackedReport
from collector.storage.sums import Sums, add_sums, forget_sums
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.words.text import counted

Counts = Counter[tuple[int, date]]


class Known(NamedTuple):
    """What the restored database says. counts: of each version and day. gone: the ids of withdrawn reports.

    taken: of those that wait, the ids that it has counted out already."""

    counts: Counts
    gone: AbstractSet[bytes]
    taken: AbstractSet[bytes]


class Found(NamedTuple):
    """What the archive's files have. taken: how many of them the database has counted out already."""

    counts: Counts
    taken: Counts
    sums: Mapping[int, Sums]


def require_archived(database: Database, study_id: str, address: str | None) -> None:
    """Raises InputError for a study that this database did not archive: what came later would be dropped."""
    if address is None:
        raise InputError(
            f"{study_id} is not archived, and all its reports are in {database.shown}: leave --restored out, "
            "and name a folder that has no archive",
            code="archive.not_archived",
        )


def take_over(
    database: Database,
    store: Store,
    study_id: str,
    rules: Mapping[int, Rules],
    turn: Turn,
    tell: Callable[[int, int], None],
    is_moved: bool = False,
) -> None:
    """Have the database count what its archive has, which went on without it.

    tell: is called with how many reports were read, and of how many. Raises InputError, before anything is
    done, for what is not this database's archive or an older copy of it, and where nothing is to be done.
    """
    manifest, is_pending = _manifest_of_files(store, study_id)
    require_own(database, store, manifest, is_moved)
    _require_archive(store, manifest)
    require_files(store, manifest, {part.path for part in manifest.parts})
    known = _known(database, study_id)
    found = _read(store, manifest, rules, known, tell)
    counts = found.counts - found.taken
    if not is_fewer(counts, known.counts):
        raise InputError(
            f"{unlike(store, study_id, counts, known.counts)}. It has some that are not counted, so it is no "
            f"newer than this database: {UNDONE}",
            code="archive.counts_not_newer",
        )
    if counts == known.counts and not is_pending:
        raise InputError(
            f"{store.address} has what the database counts of {study_id}: run this without --restored",
            code="archive.counts_equal",
        )
    turn.require()
    if is_pending:
        finish(store, manifest)
    # What is still here is in the archive, or left it since; a study that has an archive takes no reports.
    while database.act(partial(drop_page, study_id=study_id)):
        turn.require()
    line = (
        f"after a restore: {counted(manifest.reports, 'report')} in {store.address}, and "
        f"{known.counts.total()} were counted"
    )
    database.act(partial(_adopt, study_id=study_id, found=found, line=line))


def _require_archive(store: Store, manifest: Manifest) -> None:
    if not manifest.archive:
        raise InputError(
            f"{store.shown(folder_of(manifest.study))} is no archive yet, and all reports are in the "
            "database: run this without --restored",
            code="archive.not_an_archive",
        )


def _manifest_of_files(store: Store, study_id: str) -> tuple[Manifest, bool]:
    """What an archive has, each file seen to be what was written, and whether a change was interrupted.

    Then each file is as it was, or as it was to be. Raises InputError.
    """
    pending = pending_manifest(store, study_id)
    before = manifest_there(store, study_id)
    manifest = pending or before or read_manifest(store, study_id)
    earlier = () if before is None else before.parts
    known = {(part.path, part.bytes, part.sha256): part for part in (*manifest.parts, *earlier)}
    wanted = {part.path for part in manifest.parts}
    parts = []
    for path in sorted({path for path, _, _ in known}):
        digest = store.digest(f"{folder_of(study_id)}/{path}")
        if digest is None and path not in wanted:
            continue
        part = known.get((path, *(digest or (0, ""))))
        if part is None:
            where = store.shown(f"{folder_of(study_id)}/{path}")
            advice = "Put back what was there; of an archive that was being deleted run `delete-study`"
            raise InputError(
                f"{where} is not what was written there: {UNDONE}. {advice}", code="archive.file_changed"
            )
        parts.append(part)
    return manifest._replace(parts=tuple(parts)), pending is not None


def _known(database: Database, study_id: str) -> Known:
    with database.read() as session:
        state = queries.study_state(session, study_id)
        assert state is not None
        gone = withdrawn_ids(session, state.number)
        waiting = waiting_withdrawals(session, state.number)
    taken = {report_id for report_id, is_taken in waiting.items() if is_taken}
    return Known(counts_held(database, study_id), gone, taken)


def _read(
    store: Store,
    manifest: Manifest,
    rules: Mapping[int, Rules],
    known: Known,
    tell: Callable[[int, int], None],
) -> Found:
    """Count every report again. Raises InputError for one that is not of the study, or was withdrawn."""
    counts: Counts = Counter()
    taken: Counts = Counter()
    sums: dict[int, Sums] = {}
    for part in manifest.parts:
        place = key_of(part.path)
        for page in _pages(store, manifest.study, part, rules):
            _require_kept(store, manifest.study, part, page, known.gone)
            counts[place] += len(page)
            taken[place] += sum(one.id in known.taken for one in page)
            tally = rules[place[0]].tally
            if page and tally.is_kept:
                now = tally.count([one.payloads for one in page])
                sums[place[0]] = sums[place[0]] + now if place[0] in sums else now
            tell(counts.total(), manifest.reports)
    return Found(+counts, taken, sums)


def _pages(
    store: Store, study_id: str, part: Part, rules: Mapping[int, Rules]
) -> Iterable[list[PackedReport]]:
    """A file's reports. Raises InputError for any that no device of this study's version could have sent."""
    path = f"{folder_of(study_id)}/{part.path}"
    version, _ = key_of(part.path)
    try:
        for group in groups_of(store, path):
            rows = group.to_pylist()
            if any((row["study"], row["version"]) != (study_id, version) for row in rows):
                raise ReportError("version", "not the one of its file", code="report.version_of_other_file")
            yield packed_rows(rows, rules[version])
    except (ReportError, KeyError):
        # Not in its own words, which may say what was answered.
        where = store.shown(path)
        raise InputError(
            f"{where} has reports of another study or version: {UNDONE}", code="archive.report_of_other_study"
        ) from None


def _require_kept(
    store: Store, study_id: str, part: Part, page: Iterable[PackedReport], gone: AbstractSet[bytes]
) -> None:
    """Raises InputError where a file has a report whose withdrawal was acknowledged."""
    if any(one.id in gone for one in page):
        where = store.shown(f"{folder_of(study_id)}/{part.path}")
        raise InputError(
            f"{where} has a report that was withdrawn before this database's backup was made: the archive is "
            f"an older copy; {UNDONE}. Put the newer one back",
            code="archive.older_copy",
        )


def drop_page(session: Session, study_id: str) -> int:
    """Drop some of an archived study's reports from the database; how many, 0 once none is left."""
    row = queries.locked_study(session, study_id)
    assert row is not None
    assert row.archived is not None
    return drop_reports(session, row.number, REPORTS_AT_ONCE)


def _adopt(session: Session, study_id: str, found: Found, line: str) -> None:
    """Have counts and running summary be the archive's; what waits leaves both when it leaves the files."""
    row = queries.locked_study(session, study_id)
    assert row is not None
    set_archived(session, row.number, found.counts)
    forget_sums(session, [row.number])
    for version, sums in sorted(found.sums.items()):
        add_sums(session, row.number, version, sums)
    forget_fitted(session, row.number)
    audit_log.record(session, audit_log.AT_DATABASE, "archive", study_id, line)
