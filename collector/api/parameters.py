"""Read values in an address: query parameters and report ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from flask import request

from collector.problems import PARAMETER_INVALID, ProblemError, unknown_study
from ldp_client.documents.errors import ReportError, StatementError
from ldp_client.documents.fields import Day, Hex, Identifier
from ldp_client.documents.report import ID_BYTES

LARGEST_WHOLE = 10**6
# The largest whole number in the database.
LARGEST_COUNT = 2**31 - 1
REPORT_ID = Hex(2 * ID_BYTES)
STUDY_ID = Identifier()
PAGE = "participant.page"


def check_study_id(endpoint: str | None, values: Mapping[str, Any] | None) -> None:
    """Raise ProblemError if the study in the address cannot be an id, judged by its form alone.

    The database rejects some texts, such as those with the character NUL, and that would be an error in the
    shared transaction of many uploads. The participant's page handles this case itself.
    """
    study_id = (values or {}).get("study_id")
    if study_id is not None and endpoint != PAGE and not is_study_id(study_id):
        raise unknown_study(study_id)


def is_study_id(text: str) -> bool:
    """Return True if a document could have this id."""
    try:
        STUDY_ID.read(text, "study_id", ReportError)
    except ReportError:
        return False
    return True


def whole_parameter(name: str) -> int | None:
    """Read a whole number from 1 to LARGEST_WHOLE; None if it is missing. Raises ProblemError."""
    return _number(name, 1, LARGEST_WHOLE)


def count_parameter(name: str) -> int | None:
    """Read a whole number from 0 to LARGEST_COUNT; None if it is missing. Raises ProblemError."""
    return _number(name, 0, LARGEST_COUNT)


def _number(name: str, least: int, most: int) -> int | None:
    text = request.args.get(name)
    if text is None:
        return None
    # At most as long as the largest number: Python refuses to parse thousands of digits.
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not (is_short and least <= int(text) <= most):
        raise ProblemError(PARAMETER_INVALID, f"must be a whole number from {least} to {most}", name)
    return int(text)


def report_id_parameter(name: str) -> bytes:
    """Read a report's id; b"" if it is missing. Raises ProblemError."""
    text = request.args.get(name, "")
    return report_id_bytes(text, name) if text else b""


def report_id_bytes(text: str, field: str) -> bytes:
    """Return the 16 bytes of a report's id. Raises ProblemError."""
    try:
        return bytes.fromhex(REPORT_ID.read(text, field, ReportError))
    except ReportError as error:
        raise ProblemError(PARAMETER_INVALID, error.problem, field) from None


def past_day_parameter(name: str, today: date) -> date | None:
    """Read a day that is over; None if it is missing. Raises ProblemError."""
    text = request.args.get(name)
    if text is None:
        return None
    try:
        day = date.fromisoformat(Day().read(text, name, StatementError))
    except StatementError as error:
        raise ProblemError(PARAMETER_INVALID, error.problem, name) from None
    if day >= today:
        raise ProblemError(PARAMETER_INVALID, "must be a day that is over in UTC", name)
    return day


def choice_parameter(name: str, choices: Sequence[str]) -> str:
    """Read a parameter that must be among several words; the first is its default. Raises ProblemError."""
    text = request.args.get(name, choices[0])
    if text not in choices:
        raise ProblemError(PARAMETER_INVALID, f"must be one of {', '.join(choices)}", name)
    return text
