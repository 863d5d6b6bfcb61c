"""The documents' public names for servers and analysts, and the modules that only they share."""

from ldp_client.documents.errors import (
    AlreadyAnsweredError,
    AnswerError,
    BudgetError,
    DocumentError,
    InputError,
    LdpkitError,
    LedgerError,
    MissingExtraError,
    RandomnessError,
    RefusedError,
    ReportError,
    StatementError,
    StudyError,
    SummaryError,
    TransferError,
    UsageError,
)
from ldp_client.documents.rational import Rational
from ldp_client.documents.report import Report
from schemas.study import Question, Study

__all__ = [
    "AlreadyAnsweredError",
    "AnswerError",
    "BudgetError",
    "DocumentError",
    "InputError",
    "LdpkitError",
    "LedgerError",
    "MissingExtraError",
    "Question",
    "RandomnessError",
    "Rational",
    "RefusedError",
    "Report",
    "ReportError",
    "StatementError",
    "Study",
    "StudyError",
    "SummaryError",
    "TransferError",
    "UsageError",
]
