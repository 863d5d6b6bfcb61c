"""Failures: which are of the database and not of a statement, and the problem of each exception."""

import logging
import sqlite3
from functools import singledispatch

from sqlalchemy import exc

from collector import problems
from collector.limiter import log_throttled
from collector.problems import ProblemError
from ldp_client.documents import errors

DISK_FULL_CODES = (sqlite3.SQLITE_FULL, "53100")
# No such table, as during a restore: no server starts on a database without tables.
POSTGRESQL_NO_TABLE = "42P01"


class OtherReleaseError(Exception):
    """The database belongs to another release now: this release would count new reports wrongly."""

    detail = "the database is another release's; nothing was stored"


class PartlyHeldError(Exception):
    """Some of the reports to insert were held before; the transaction must be rolled back."""


class WrongSumsError(Exception):
    """The kept sums have the wrong length for their version: the database is damaged."""

    detail = "the running summary is damaged; the server's log has what to do"


def one_line(error: BaseException | None) -> str:
    """Return an error's message without line breaks."""
    return " ".join(str(error).split())


def code_of(error: Exception) -> str | int | None:
    """Return PostgreSQL's or SQLite's code of an error, None for other errors."""
    cause = error.orig if isinstance(error, exc.DBAPIError) else None
    return getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorcode", None)


# Errors of a statement or its values. All others are errors of the database itself.
OF_A_STATEMENT = (exc.DataError, exc.IntegrityError, exc.NotSupportedError, exc.ProgrammingError)


def is_of_all(error: Exception) -> bool:
    """Return True if every other write would fail now too: the database is locked, full or away."""
    of_database = isinstance(error, exc.SQLAlchemyError) and not isinstance(error, OF_A_STATEMENT)
    return of_database or code_of(error) == POSTGRESQL_NO_TABLE or isinstance(error, OtherReleaseError)


KIND_OF_DOCUMENT = {
    errors.StudyError: problems.STUDY_INVALID,
    errors.ReportError: problems.REPORT_INVALID,
    errors.StatementError: problems.STATEMENT_INVALID,
}


@singledispatch
def problem_of(error: Exception) -> ProblemError:
    """Return the problem for an exception."""
    # Log neither path nor body: a log line with a report would give it a time.
    log_throttled(logging.ERROR, "a request failed", error)
    return ProblemError(problems.INTERNAL, "an error that is not the sender's; the server's log has it")


@problem_of.register
def _(error: ProblemError) -> ProblemError:
    return error


@problem_of.register(errors.StudyError)
@problem_of.register(errors.ReportError)
@problem_of.register(errors.StatementError)
def _(error: errors.DocumentError) -> ProblemError:
    return ProblemError(KIND_OF_DOCUMENT[type(error)], error.problem, error.field)


@problem_of.register(exc.TimeoutError)
@problem_of.register(exc.DBAPIError)
def _(error: exc.SQLAlchemyError) -> ProblemError:
    if not is_of_all(error):
        return problem_of.dispatch(Exception)(error)
    if code_of(error) in DISK_FULL_CODES:
        log_throttled(logging.ERROR, "the database's disk is full: nothing more is stored")
        return ProblemError(problems.DISK_FULL, "nothing was stored")
    line = f"the database cannot be used: {one_line(getattr(error, 'orig', error))}"
    log_throttled(logging.WARNING, line)
    return ProblemError(problems.UNAVAILABLE, "the database is locked or away; nothing was stored")


@problem_of.register(OtherReleaseError)
@problem_of.register(WrongSumsError)
def _(error: OtherReleaseError | WrongSumsError) -> ProblemError:
    log_throttled(logging.ERROR, str(error))
    return ProblemError(problems.UNAVAILABLE, error.detail)
