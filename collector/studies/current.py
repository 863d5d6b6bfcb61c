"""The studies as they are published now, read once a second however many people ask for them."""

from __future__ import annotations

import time
from threading import Lock
from typing import NamedTuple

from collector.storage import queries
from collector.storage.database import Database
from collector.storage.queries import StudyState

# Seconds for which another process's publishing or closing may go unseen; devices may keep a document for 60.
LIFETIME = 1.0
# How many studies are kept: what is asked of one collector in a second.
MOST = 256


class Published(NamedTuple):
    """The current version of a study: its canonical bytes, their digest, and whether reports are taken."""

    version: int
    digest: str
    canonical: bytes
    state: StudyState


class CurrentStudies:
    """The current version of every study that somebody asks for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[str, tuple[float, Published]] = {}
        self._lock = Lock()

    def find(self, study_id: str) -> Published | None:
        """Return the study as it stood at most LIFETIME ago; None where none is published."""
        kept = self._kept.get(study_id)
        if kept is not None and time.monotonic() < kept[0]:
            return kept[1]
        read_at = time.monotonic()
        published = self._read(study_id)
        if published is not None:
            with self._lock:
                if len(self._kept) >= MOST:
                    self._kept.clear()
                self._kept[study_id] = (read_at + LIFETIME, published)
        return published

    def forget(self, study_id: str) -> None:
        """Read the study anew next time: this process has changed it."""
        with self._lock:
            self._kept.pop(study_id, None)

    def _read(self, study_id: str) -> Published | None:
        with self._database.read() as session:
            document = queries.find_document(session, study_id)
            state = queries.study_state(session, study_id)
            if document is None or state is None:
                return None
            return Published(document.version, document.digest, document.canonical, state)
