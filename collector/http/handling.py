"""Turning every exception that leaves a view into the problem it stands for."""

from __future__ import annotations

import logging
from functools import singledispatch
from http import HTTPStatus

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

from collector.http.problems import (
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
from schemas.errors import ReportError, StatementError, StudyError

LOGGER = logging.getLogger("collector")
ADVICE_BY_STATUS = {
    404: "Check the address; the routes are under /v1/studies.",
    405: "Use one of the methods that the Allow header lists.",
}


@singledispatch
def problem_of(error: Exception) -> ProblemError:
    """The problem that an exception stands for."""
    # Neither path nor body: a log line that named a report would give it a time.
    LOGGER.error("a request failed", exc_info=error)
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
        return ProblemError(DISK_FULL, "nothing was stored")
    LOGGER.warning("the database cannot be used: %s", one_line(getattr(error, "orig", error)))
    return ProblemError(UNAVAILABLE, "the database is locked or away; nothing was stored")


@problem_of.register(DataError)
@problem_of.register(IntegrityError)
@problem_of.register(NotSupportedError)
@problem_of.register(ProgrammingError)
def _(error: SQLAlchemyError) -> ProblemError:
    return problem_of.dispatch(Exception)(error)


def install(app: Flask) -> None:
    """Answer every error of the app with a problem document."""
    app.register_error_handler(Exception, lambda error: problem_of(error).response())
