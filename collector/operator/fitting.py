"""Running posteriors: fits every study again as its reports change, in processes of their own.

Runs beside the collector, at the lowest priority, and reads only the running summaries. Fitting is
`ldpkit fit`, started anew for each fit: the collector's own processes never load the inference package,
and memory is given back between fits. After a fit that took t seconds the study is left alone for
REST · t, so that following a busy study costs a twentieth of one core at most.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector.problems import ProblemError
from collector.reports.paging import Source
from collector.reports.running_summary import read_summary, require_summary
from collector.storage import queries
from collector.storage.database import one_line
from collector.storage.models import PosteriorRow
from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError
from schemas import Study
from summaries.engines.spilling import saying_no_room

LOGGER = logging.getLogger("collector")
LDPKIT = [sys.executable, "-m", "ldp_client.cli"]
REST = 20.0
LOOK_SECONDS = 5.0
STOP_SECONDS = 5.0
MOST_SECONDS = 3600.0
MOST_FAILURE = 500
SECONDS_A_DAY = 86_400
EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Fitted:
    """One fit of a version. day: when, since 1970; no finer, as it follows the arrival of reports.

    questions: the entries of posterior.json, by question. failure: why there are none, if so.
    summary: SHA-256 of the summary that was fitted. With neither questions nor failure it holds the place of
    a version's first fit.
    """

    day: int
    questions: dict[str, Any]
    failure: str | None = None
    summary: str = ""

    @property
    def days_ago(self) -> int:
        """How old it is."""
        return max(0, this_day() - self.day)

    @property
    def is_made(self) -> bool:
        """Whether it came to an end, good or bad."""
        return bool(self.questions) or self.failure is not None


class NotBegunError(InputError):
    """A fit that could not begin, for want of this machine: of room for its files, say."""

    code = "fit.not_started"


def this_day() -> int:
    """The day of the clock, in UTC, since 1970."""
    return int(time.time()) // SECONDS_A_DAY


def keep_fitted(session: Session, study: int, version: int, fitted: Fitted) -> None:
    """Put a fit in the place of the one before, of whatever version."""
    forget_fitted(session, study)
    said = {"questions": fitted.questions, "failure": fitted.failure, "summary": fitted.summary}
    session.add(PosteriorRow(study=study, version=version, day=fitted.day, fitted=json.dumps(said)))


def forget_fitted(session: Session, study: int) -> None:
    """Delete what was fitted to a study's reports."""
    session.execute(delete(PosteriorRow).where(PosteriorRow.study == study))


def forget_fitted_before(session: Session, study: int, version: int, day: date) -> None:
    """Delete what was fitted to a version's reports before a day, date.max for all of it."""
    here = (PosteriorRow.study == study, PosteriorRow.version == version)
    session.execute(delete(PosteriorRow).where(*here, PosteriorRow.day < (day - EPOCH).days))


def is_fitted(session: Session, study: int) -> bool:
    """Whether there is a fit of any version of a study."""
    return session.scalar(select(PosteriorRow.study).where(PosteriorRow.study == study).limit(1)) is not None


def last_fitted(session: Session, study: int, version: int) -> Fitted | None:
    """What is kept of a version's last fit: its first may be under way, or have been stopped."""
    row = session.get(PosteriorRow, (study, version))
    return None if row is None else Fitted(row.day, **json.loads(row.fitted))


def last_made(session: Session, study: int, version: int) -> Fitted | None:
    """The last fit of a version that came to an end, if there was one: what people are shown."""
    fitted = last_fitted(session, study, version)
    return fitted if fitted is not None and fitted.is_made else None


class Fitter:
    """Keeps the posteriors of the current version of every study up to date. look: seconds between looks."""

    def __init__(self, source: Source, look: float = LOOK_SECONDS) -> None:
        self._source = source
        self._look = look
        self._due: dict[str, float] = {}
        # By study: the digest of the summary that was fitted last, or why that could not begin.
        self._seen: dict[str, str] = {}

    def watch(self, parent: int) -> None:
        """Look again and again, until the process that started this one, `parent`, has ended."""
        while os.getppid() == parent:
            try:
                self.fit_all()
            except (SQLAlchemyError, OSError) as error:
                LOGGER.warning("posteriors cannot be fitted now: %s", one_line(getattr(error, "orig", error)))
            time.sleep(self._look)

    def fit_all(self) -> bool:
        """Fit every study that is due and has changed; whether every fit could begin."""
        all_began = True
        with self._source.database.read() as session:
            studies = queries.study_numbers(session)
        for study_id, number in studies:
            start = time.monotonic()
            if start >= self._due.get(study_id, start):
                try:
                    self._fit_if_changed(study_id, number)
                except ProblemError as problem:
                    self._keep_failure(study_id, number, f"{problem.kind.title}: {problem.detail}")
                except NotBegunError as error:
                    all_began = False
                    self._tell(study_id, str(error))
                    self._keep_failure(study_id, number, str(error))
                except (SQLAlchemyError, OSError):
                    raise
                except Exception as error:
                    # One study's fault: the others go on. Its text, which may quote a summary, is not logged.
                    LOGGER.error("%s: its posteriors cannot be fitted: %s", study_id, type(error).__name__)
                end = time.monotonic()
                self._due[study_id] = end + REST * (end - start)
        return all_began

    def _fit_if_changed(self, study_id: str, number: int) -> None:
        with self._source.database.read() as session:
            state = queries.study_state(session, study_id)
        if state is None or state.deleted:
            self._forget(number)
            return
        require_summary(self._source, study_id)
        if not self._has_reports(number):
            # One is as long without any: nothing is made of one.
            return
        summary = read_summary(self._source, study_id)
        text = summary.to_json()
        digest = sha256(text.encode()).hexdigest()
        if not any(part.n for part in summary.questions.values()):
            # Nor of an earlier version's, which nothing shows: what was fitted would keep withdrawn reports.
            self._forget(number)
            return
        known = self._known(number, summary.version)
        # In the table too: who deletes reports deletes what was fitted, whether or not the summary changes.
        fits = known is not None and known.summary == digest
        # A fit that failed is tried again by the next run of this program.
        if not fits or (known is not None and known.failure and self._seen.get(study_id) != digest):
            if known is None:
                # Whoever deletes reports meanwhile deletes this, and then no posterior of them is kept.
                self._keep(number, summary.version, Fitted(this_day(), {}))
            fitted = run_fit(self._source.rules.find(study_id, summary.version).study, text)
            kept = replace(fitted, summary=digest)
            # Of reports that were deleted since nothing is kept, also where another fitter has begun anew.
            left = state.deletions
            self._source.database.act(
                lambda session: _keep_if_left(session, study_id, summary.version, kept, left)
            )
        self._seen[study_id] = digest

    def _has_reports(self, number: int) -> bool:
        """Whether there is anything to fit; where not, what was fitted before is forgotten."""
        with self._source.database.read() as session:
            found = queries.has_reports(session, number)
        if not found:
            self._forget(number)
        return found

    def _forget(self, number: int) -> None:
        with self._source.database.read() as session:
            left = is_fitted(session, number)
        if left:
            self._source.database.act(lambda session: forget_fitted(session, number))

    def _tell(self, study_id: str, failure: str) -> None:
        """Log why a fit could not begin, but not at every look."""
        if self._seen.get(study_id) != failure:
            LOGGER.warning("%s: its posteriors cannot be fitted: %s", study_id, failure)
            self._seen[study_id] = failure

    def _keep_failure(self, study_id: str, number: int, failure: str) -> None:
        """Keep why there is no fit, which the next look tries again."""
        with self._source.database.read() as session:
            document = queries.find_document(session, study_id)
            assert document is not None
            known = last_fitted(session, number, document.version)
        if known is None or known.failure != failure:
            fitted = Fitted(this_day(), {}, failure)
            self._keep(number, document.version, fitted)

    def _keep(self, number: int, version: int, fitted: Fitted) -> None:
        self._source.database.act(lambda session: keep_fitted(session, number, version, fitted))

    def _known(self, number: int, version: int) -> Fitted | None:
        with self._source.database.read() as session:
            return last_fitted(session, number, version)


def _keep_if_left(session: Session, study_id: str, version: int, fitted: Fitted, deletions: int) -> None:
    """Keep a fit unless reports were deleted since it began: that took away what stood in its place.

    deletions: as they were counted then.
    """
    row = queries.locked_study(session, study_id)
    if (
        row is not None
        and row.deletions == deletions
        and last_fitted(session, row.number, version) is not None
    ):
        keep_fitted(session, row.number, version, fitted)


def run_fit(study: Study, summary: str) -> Fitted:
    """The posterior of each question of a study, from a process of its own that has ended on return.

    Raises NotBegunError where there is no room for its files, or no process can be started.
    """
    with saying_no_room(NotBegunError):
        made = tempfile.TemporaryDirectory(prefix="ldpkit-fit-")
    with made as name:
        folder = Path(name)
        with saying_no_room(NotBegunError):
            (folder / "study.json").write_bytes(study.canonical())
            (folder / "summary.json").write_text(summary, encoding="utf-8")
            log = (folder / "log").open("wb")
        with log, _started(folder, log) as process:
            failed = _exit_code(process) not in (0, EXIT_NOT_TRUSTED)
        if failed:
            return Fitted(this_day(), {}, _last_line(folder / "log"))
        return Fitted(this_day(), _questions(folder / "fit" / "posterior.json"))


@contextmanager
def _started(folder: Path, log: Any) -> Iterator[subprocess.Popen[bytes]]:
    """`ldpkit fit`, ended when the block is left, however that comes."""
    files = [str(folder / "study.json"), str(folder / "summary.json")]
    command = [*LDPKIT, "fit", *files, "--out", str(folder / "fit")]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    except OSError as error:
        raise NotBegunError(f"`ldpkit fit` cannot be started: {error.strerror}") from None
    try:
        yield process
    finally:
        if process.poll() is None:
            end_process(process)


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code, or None for one that takes too long."""
    try:
        return process.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def end_process(process: subprocess.Popen[bytes], seconds: float = STOP_SECONDS) -> None:
    """Ask a process to end, and kill it where it has not in so many seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _questions(path: Path) -> dict[str, Any]:
    document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    questions: dict[str, Any] = document["questions"]
    return questions


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][-MOST_FAILURE:] if lines else "the fit ended without a word"
