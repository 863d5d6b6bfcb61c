"""A server's daily work, which runs whether or not reports arrive."""

from __future__ import annotations

import logging
import time
from datetime import date
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from collector.limiter import log_throttled
from collector.operator.stated_retention import delete_overdue, kept_of
from collector.problems import ProblemError
from collector.storage import audit_log, queries
from collector.storage.database import one_line
from collector.storage.failures import is_of_all
from collector.storage.sums import WrongSumsError
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from collector.context import Collector
    from collector.operator.stated_retention import Kept
    from schemas import Study

LOOK_SECONDS = 60.0


class Days:
    """Logs each day's counts, deletes reports whose retention is over, and has the files rewritten."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._seen: date | None = None
        # (study's number, version): the day on which its retention was last done.
        self._kept: dict[tuple[int, int], date] = {}

    def start(self) -> None:
        """Check periodically, in a thread of the serving process, because threads do not survive a fork."""
        Thread(target=self._watch, name="days", daemon=True).start()

    def look(self) -> None:
        """Do the work that is due. A failure is logged and retried at a later check."""
        today = self._collector.today()
        # Deletions first, so that the upkeep removes the deleted reports from the files.
        for name, work in (("retention", self._keep_retention), ("upkeep", self._keep_up)):
            try:
                work(today)
            except Exception as error:
                _tell(name, error)

    def _keep_retention(self, today: date) -> None:
        if self._seen == today:
            return
        all_done = True
        for kept in kept_everywhere(self._collector):
            place = (kept.number, kept.version)
            if self._kept.get(place) == today:
                continue
            try:
                self._delete_overdue(kept, today)
            except Exception as error:
                if is_of_all(error) or isinstance(error, (InputError, ProblemError)):
                    raise
                # A failure of one study must not stop the deletions of others.
                _tell(f"retention of {kept.study}", error)
                all_done = False
            else:
                self._kept[place] = today
        if all_done:
            self._seen = today

    def _delete_overdue(self, kept: Kept, today: date) -> None:
        collector = self._collector
        find = partial(collector.rules.find, reserved=True)
        deleted = delete_overdue(collector.writer.act, find, kept, today, audit_log.BY_SERVER)
        note_deleted(collector, kept, deleted)

    def _keep_up(self, _today: date) -> None:
        """Run the upkeep that the first reports of a day trigger, in case none arrive."""
        self._collector.writer.change(("", b""), lambda _session: None)

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(LOOK_SECONDS)


def _tell(what: str, error: Exception) -> None:
    """Log that part of the day's work failed."""
    why = one_line(getattr(error, "orig", error))
    if isinstance(error, WrongSumsError):
        why = f"a running summary is damaged ({why}): run `ldpkit upkeep --recount`"
    line = f"the day's {what} failed, and is tried again: {why}"
    log_throttled(logging.WARNING, line, code="day-failed")


def kept_everywhere(collector: Collector) -> list[Kept]:
    """Return the retention of every version of every study that states one."""
    arrivals, today = collector.arrivals.get(), collector.today()
    with collector.database.read() as session:
        # One query for all studies: a server may have a thousand, and metrics are read four times a minute.
        versions = queries.every_version(session)
    documents = [(one, number, collector.rules.find(one, version).study) for one, number, version in versions]
    return [
        kept
        for study_id, number, study in documents
        for kept in kept_of(study_id, number, [study], arrivals, today)
    ]


def documents_of(collector: Collector, study_id: str) -> list[Study]:
    """Return every version of a study."""
    with collector.database.read() as session:
        versions = queries.published_versions(session, study_id)
    return [collector.rules.find(study_id, version).study for version in versions]


def note_deleted(collector: Collector, kept: Kept, deleted: int) -> None:
    """Add reports that retention deleted to the counts."""
    if deleted:
        collector.metrics.count_deletion("retention", deleted)
        collector.has_changed(kept.study)
        collector.arrivals.forget()
