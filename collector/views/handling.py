"""Turning every exception that leaves a view into the problem it stands for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import singledispatch
from http import HTTPStatus
from threading import Lock

from flask import Flask
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from collector.problems import (
    BODY_TOO_LARGE,
    DISK_FULL,
    INTERNAL,
    REPORT_INVALID,
    STATEMENT_INVALID,
    STUDY_INVALID,
    UNAVAILABLE,
    Kind,
    ProblemError,
)
from collector.storage.database import is_disk_full, one_line
from collector.storage.queries import OtherReleaseError
from ldp_client.documents.errors import ReportError, StatementError, StudyError

LOGGER = logging.getLogger("collector")
REST_SECONDS = 60.0
ADVICE_BY_STATUS = {
    404: "Check the address; the routes are under /v1/studies.",
    405: "Use one of the methods that the Allow header lists.",
}


class Seldom:
    """Logs a line at once, and the same again no sooner than REST_SECONDS later, with how often it came.

    So an outage shows at once and fills no disk.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._seen: dict[str, tuple[float, int]] = {}

    def log(self, level: int, line: str, cause: BaseException | None = None) -> None:
        """Log a line, or count it. cause: logged with it, and each of its kind counts by itself."""
        key = line if cause is None else f"{line}: {type(cause).__name__}"
        now = self._clock()
        with self._lock:
            due, left_out = self._seen.get(key, (now, 0))
            if now < due:
                self._seen[key] = due, left_out + 1
                return
            self._seen[key] = now + REST_SECONDS, 0
        more = f" (and {left_out} times since this was last logged)" if left_out else ""
        LOGGER.log(level, "%s%s", line, more, exc_info=cause)

    def forget(self) -> None:
        """Log everything again."""
        self._seen.clear()


SELDOM = Seldom()
log_seldom = SELDOM.log


@singledispatch
def problem_of(error: Exception) -> ProblemError:
    """The problem that an exception stands for."""
    # Neither path nor body: a log line that named a report would give it a time.
    log_seldom(logging.ERROR, "a request failed", error)
    return ProblemError(INTERNAL, "an error that is not the sender's; the server's log has it")


@problem_of.register
def _(error: ProblemError) -> ProblemError:
    return error


@problem_of.register
def _(error: StudyError) -> ProblemError:
    return ProblemError(STUDY_INVALID, error.problem, error.field)


@problem_of.register
def _(error: ReportError) -> ProblemError:
    return ProblemError(REPORT_INVALID, error.problem, error.field)


@problem_of.register
def _(error: StatementError) -> ProblemError:
    return ProblemError(STATEMENT_INVALID, error.problem, error.field)


@problem_of.register
def _(error: HTTPException) -> ProblemError:
    status = HTTPStatus(error.code or 500)
    advice = ADVICE_BY_STATUS.get(status, "Correct the request.")
    kind = Kind(status.phrase.lower().replace(" ", "-"), status, status.phrase, advice)
    return ProblemError(kind, error.description or status.phrase)


@problem_of.register
def _(error: MethodNotAllowed) -> ProblemError:
    kind = Kind("method-not-allowed", 405, "Method not allowed", ADVICE_BY_STATUS[405])
    allowed = ", ".join(sorted(error.valid_methods or ()))
    return ProblemError(kind, f"this address takes {allowed}", headers={"Allow": allowed})


@problem_of.register
def _(_error: RequestEntityTooLarge) -> ProblemError:
    return ProblemError(BODY_TOO_LARGE, "the body is above the collector's limit")


@problem_of.register(PoolTimeoutError)
@problem_of.register(DatabaseError)
@problem_of.register(InterfaceError)
def _(error: SQLAlchemyError) -> ProblemError:
    if is_disk_full(error):
        log_seldom(logging.ERROR, "the database's disk is full: nothing more is stored")
        return ProblemError(DISK_FULL, "nothing was stored")
    log_seldom(logging.WARNING, f"the database cannot be used: {one_line(getattr(error, 'orig', error))}")
    return ProblemError(UNAVAILABLE, "the database is locked or away; nothing was stored")


@problem_of.register(DataError)
@problem_of.register(IntegrityError)
@problem_of.register(NotSupportedError)
@problem_of.register(ProgrammingError)
def _(error: SQLAlchemyError) -> ProblemError:
    return problem_of.dispatch(Exception)(error)


@problem_of.register
def _(error: OtherReleaseError) -> ProblemError:
    LOGGER.error("%s", error)
    return ProblemError(UNAVAILABLE, "the database is another release's; nothing was stored")


def install(app: Flask) -> None:
    """Answer every error of the app with a problem document."""
    app.register_error_handler(Exception, lambda error: problem_of(error).response())
