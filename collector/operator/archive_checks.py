"""Whether what lies at an archive's address is this study's archive, and all of it.

By a backup that was copied back, or storage that is mounted in the wrong place, it may be an older copy, an
export, or another database's: then nothing of it is deleted, and no withdrawal acknowledged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import date

from collector.exports.dataset import manifest_there, read_manifest
from collector.exports.keeping import counts_of
from collector.exports.layout import PART, UNFINISHED, Manifest, folder_of
from collector.exports.store import Store
from collector.exports.unfinished import pending_manifest
from collector.storage import queries
from collector.storage.archived import Counts, archived_counts, stored_counts, waiting_withdrawals
from collector.storage.database import Database
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted

# Of the files that an error names.
MOST_NAMED = 3
UNDONE = "nothing was deleted, and no withdrawal acknowledged"


def manifest_of(store: Store, study_id: str) -> Manifest:
    """What an archive has, or was to have when the last change of it was interrupted. Raises InputError."""
    return pending_manifest(store, study_id) or read_manifest(store, study_id)


def require_own(database: Database, store: Store, manifest: Manifest, is_moved: bool = False) -> None:
    """Raises InputError for another database's, and for an export once reports are in an archive alone.

    is_moved: whether it is known by another address: then also for any other export.
    """
    with database.read() as session:
        state = queries.study_state(session, manifest.study)
        identity = queries.identity(session).hex()
        has_begun = state is not None and bool(archived_counts(session, state.number))
    is_other = manifest.collector not in (None, identity)
    if not is_other and (manifest.archive or not (has_begun or is_moved)):
        return
    what = "another database's" if is_other else "an export, perhaps an older copy"
    raise InputError(
        f"{store.shown(folder_of(manifest.study))} is not the archive of {manifest.study} but {what}: "
        f"{UNDONE}. See what is mounted or was copied there",
        code="archive.of_other_database",
    )


def require_counts(database: Database, store: Store, study_id: str, found: Counts) -> None:
    """Raises InputError unless an archive has as many reports of each version and day as is counted."""
    there = counts_held(database, study_id)
    if there == Counter(found):
        return
    error = f"{unlike(store, study_id, found, there)}; {UNDONE}"
    if not is_fewer(found, there):
        raise InputError(error, code="archive.manifest_counts")
    raise InputError(f"{error}. {_after_restoring(database, store, study_id)}", code="archive.wrong_counts")


def counts_held(database: Database, study_id: str) -> Counter[tuple[int, date]]:
    """How many reports of each version and day the database counts, here and in the archive."""
    with database.read() as session:
        state = queries.study_state(session, study_id)
        assert state is not None
        return Counter(archived_counts(session, state.number)) + Counter(stored_counts(session, state.number))


def unlike(store: Store, study_id: str, found: Counts, there: Counts) -> str:
    """That an archive has others than are counted, in words."""
    return (
        f"{store.address} has {counted(sum(found.values()), 'report')} of {study_id}, and the database "
        f"counts {sum(there.values())}: one of them is an older copy. The archive's own are what "
        "`ldpkit summarize` makes of it"
    )


def is_fewer(found: Counts, there: Counts) -> bool:
    """Whether an archive has less than is counted, and nothing more: as where the database was restored."""
    return not Counter(found) - Counter(there)


def _after_restoring(database: Database, store: Store, study_id: str) -> str:
    with database.read() as session:
        state = queries.study_state(session, study_id)
    # Else the command would refuse the address.
    is_known = state is None or state.archived in (None, store.address)
    options = "--restored" if is_known else "--moved --restored"
    return (
        "Where this database is a copy that was restored, the archive is another's; where it was restored in "
        f"the place of the one it is a copy of, run `ldpkit admin archive {study_id} --to {store.address} "
        f"{options}` once"
    )


def require_as_counted(database: Database, store: Store, manifest: Manifest) -> None:
    """Raises InputError for an archive that is not to be deleted: it went on without this database, or ahead.

    Also where a change was interrupted: what it was to have is written once the database has counted it out.
    """
    study_id, found = manifest.study, counts_of(manifest.parts)
    there = counts_held(database, study_id)
    if there == found:
        return
    with database.read() as session:
        state = queries.study_state(session, study_id)
        assert state is not None
        taken = sum(waiting_withdrawals(session, state.number).values())
    unfinished = store.shown(f"{folder_of(study_id)}/{UNFINISHED}")
    if manifest_there(store, study_id) is None:
        advice = (
            "Where this database is a copy that was restored, the archive is another's; where not, delete "
            f"its files, put an empty file {unfinished} there, and run this again"
        )
    elif is_fewer(found, there):
        advice = _after_restoring(database, store, study_id)
    elif is_fewer(there, found) and sum(found.values()) - sum(there.values()) <= taken:
        # These are counted out, and a run that was killed did not come to their files.
        advice = f"Withdrawals wait: run `ldpkit admin archive {study_id} --to {store.address}` first"
    else:
        advice = (
            "Put the archive back; where this is all there is of it, delete its files, put an empty file "
            f"{unfinished} there, and run this again"
        )
    raise InputError(
        f"{unlike(store, study_id, found, there)}; {UNDONE}. {advice}", code="archive.counts_differ"
    )


def require_names(store: Store, manifest: Manifest) -> None:
    """Raises InputError unless an archive's files are all there by name, and no others that it never had.

    Once a deletion has taken the manifest away, it may have taken files too.
    """
    has_begun = manifest_there(store, manifest.study) is None
    _require_paths(store, manifest, {} if has_begun else dict.fromkeys(part.path for part in manifest.parts))


def require_files(store: Store, manifest: Manifest, read: Collection[str]) -> None:
    """The same by names and lengths.

    read: those whose content was read and is known.
    """
    wanted = {part.path: part.bytes for part in manifest.parts if part.path not in read}
    _require_paths(store, manifest, wanted)


def _require_paths(store: Store, manifest: Manifest, wanted: Mapping[str, int | None]) -> None:
    """Raises InputError unless these files are there, and none that the archive never had.

    wanted: the length of each, None for any.
    """
    folder = folder_of(manifest.study)
    there = {path: size for path, size in store.sizes(folder).items() if PART.fullmatch(path)}
    if wrong := [
        path for path, size in wanted.items() if path not in there or size not in (None, there[path])
    ]:
        raise InputError(
            f"{store.shown(folder)} lacks {_some(wrong)} that the archive has, or has another in its place: "
            f"{UNDONE}. Put back what was there",
            code="archive.files_missing",
        )
    own = {part.path for part in manifest.parts}
    if extra := sorted(there.keys() - own - _leaving(store, manifest.study, there.keys())):
        raise InputError(
            f"{store.shown(folder)} has {_some(extra)} beside the archive's own: {UNDONE}. Move away what "
            "was copied there",
            code="archive.extra_files",
        )


def _some(paths: list[str]) -> str:
    more = ", …" if len(paths) > MOST_NAMED else ""
    return f"{counted(len(paths), 'file')} ({', '.join(paths[:MOST_NAMED])}{more})"


def _leaving(store: Store, study_id: str, there: Collection[str]) -> set[str]:
    """The files that an interrupted change of an archive may have been about to delete."""
    if pending_manifest(store, study_id) is None:
        return set()
    before = manifest_there(store, study_id)
    return set(there) if before is None else {part.path for part in before.parts}
