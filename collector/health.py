"""What needs an operator: backups, keys, the disk, ended studies, exports with withdrawn reports."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy.orm import Session

from collector import audit_log, keys
from collector.status import StudyOverview, database_bytes, state_of
from collector.store import count_withdrawn
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from collector.context import Collector

# The oldest backup that is recent.
BACKUP_DAYS = 7
# How long before its last day a key should be replaced.
KEY_DAYS = 14
FREE_SHARE = 0.05


class Check(NamedTuple):
    """One line. ok: whether nothing needs action. detail: what is found, and what to do."""

    name: str
    ok: bool
    detail: str


def checks_of(collector: Collector) -> list[Check]:
    """Return what the collector knows of its health, at least one line for each subject."""
    today, studies = collector.today(), collector.studies.get()
    with collector.database.read() as session:
        return [
            _backup(audit_log.last_backup(session), today),
            *_keys(keys.list_keys(session), today),
            _disk(collector.database.file, database_bytes(session)),
            *_ended(studies, today, timedelta(collector.settings.grace_days)),
            *_exports(session, studies),
        ]


def _lines(name: str, problems: Iterable[str], fine: str) -> list[Check]:
    return [Check(name, False, problem) for problem in problems] or [Check(name, True, fine)]


def _backup(last: date | None, today: date) -> Check:
    if last is None:
        return Check("backup", False, "none was made by `ldpkit backup`")
    days = (today - last).days
    advice = "" if days <= BACKUP_DAYS else ": let a timer run `ldpkit backup`"
    return Check("backup", days <= BACKUP_DAYS, f"the last one is {counted(days, 'day')} old{advice}")


def _keys(made: Iterable[keys.Key], today: date) -> list[Check]:
    soon = today + timedelta(KEY_DAYS)
    ending = [(key.name, key.expires) for key in made if key.expires is not None and key.expires < soon]
    problems = (f"{name} expires on {day}: make a new one, and revoke it" for name, day in ending)
    return _lines("keys", problems, f"none expires before {soon}")


def _disk(file: Path | None, size: int) -> Check:
    taken = f"the database takes {_gigabytes(size)}"
    if file is None:
        return Check("disk", True, f"{taken}; look at PostgreSQL's disk yourself")
    disk = shutil.disk_usage(file.parent)
    # The daily upkeep writes the database a second time.
    is_enough = disk.free > max(size, FREE_SHARE * disk.total)
    advice = "" if is_enough else ": make room, the daily upkeep needs as much again"
    return Check("disk", is_enough, f"{_gigabytes(disk.free)} free, {taken}{advice}")


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"


def _ended(studies: Iterable[StudyOverview], today: date, grace: timedelta) -> list[Check]:
    """Check that a study is closed once late reports are not taken either."""
    problems = (
        f"{study.id} ended on {study.closes}: run `ldpkit close {study.id}`, then export it"
        for study in studies
        if study.closes is not None and state_of(study, today) == "ended" and study.closes + grace < today
    )
    return _lines("studies", problems, "none is open after its last day")


def _exports(session: Session, studies: Sequence[StudyOverview]) -> list[Check]:
    exported, problems = audit_log.last_exports(session), []
    for study in studies:
        if study.id in exported and not study.deleted:
            day, withdrawn = exported[study.id]
            since = count_withdrawn(session, study.number) - withdrawn
            # Ids of withdrawn reports are forgotten in time: a smaller count may hide new ones.
            if since:
                what = f"reports of {study.id} were withdrawn since its last export on {day}"
                problems.append(f"{what}: export again, and delete older copies")
    return _lines("exports", problems, "none has reports that were withdrawn since")
