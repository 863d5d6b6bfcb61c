"""The problem for an exception: a document's or a database's error, in the sender's terms."""

from __future__ import annotations

import logging
from functools import singledispatch

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

from collector.limiter import log_throttled
from collector.problems import (
    DISK_FULL,
    INTERNAL,
    REPORT_INVALID,
    STATEMENT_INVALID,
    STUDY_INVALID,
    UNAVAILABLE,
    ProblemError,
)
from collector.storage.database import is_disk_full, is_without_tables, one_line
from collector.storage.queries import OtherReleaseError
from collector.storage.sums import WrongSumsError
from ldp_client.documents.errors import ReportError, StatementError, StudyError

# Errors of a statement or its values. All others are errors of the database itself.
OF_A_STATEMENT = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


def is_of_all(error: Exception) -> bool:
    """Return True if every other write would fail now too: the database is locked, full or away."""
    of_database = isinstance(error, SQLAlchemyError) and not isinstance(error, OF_A_STATEMENT)
    return of_database or is_without_tables(error) or isinstance(error, OtherReleaseError)


@singledispatch
def problem_of(error: Exception) -> ProblemError:
    """Return the problem for an exception."""
    # Log neither path nor body: a log line with a report would give it a time.
    log_throttled(logging.ERROR, "a request failed", error, "request-failed")
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


@problem_of.register(PoolTimeoutError)
@problem_of.register(DatabaseError)
@problem_of.register(InterfaceError)
def _(error: SQLAlchemyError) -> ProblemError:
    if is_disk_full(error):
        log_throttled(logging.ERROR, "the database's disk is full: nothing more is stored", code="disk-full")
        return ProblemError(DISK_FULL, "nothing was stored")
    line = f"the database cannot be used: {one_line(getattr(error, 'orig', error))}"
    log_throttled(logging.WARNING, line, code="database-away")
    return ProblemError(UNAVAILABLE, "the database is locked or away; nothing was stored")


@problem_of.register(DataError)
@problem_of.register(IntegrityError)
@problem_of.register(NotSupportedError)
@problem_of.register(ProgrammingError)
def _(error: SQLAlchemyError) -> ProblemError:
    return problem_of.dispatch(DatabaseError if is_without_tables(error) else Exception)(error)


@problem_of.register
def _(error: OtherReleaseError) -> ProblemError:
    log_throttled(logging.ERROR, str(error), code="other-release")
    return ProblemError(UNAVAILABLE, "the database is another release's; nothing was stored")


@problem_of.register
def _(error: WrongSumsError) -> ProblemError:
    line = f"a running summary has another length ({error}): run `ldpkit upkeep --recount`"
    log_throttled(logging.ERROR, line, code="summary-damaged")
    return ProblemError(UNAVAILABLE, "the running summary is damaged; nothing was changed")
