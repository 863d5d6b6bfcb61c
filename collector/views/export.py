"""Stream a study's reports to the operator."""

from __future__ import annotations

from datetime import date
from itertools import chain

from flask import Blueprint, Response, request

from collector.auth import operator_only
from collector.context import current_collector
from collector.exporting import export_pages
from collector.problems import PARAMETER_INVALID, ProblemError

export = Blueprint("export", __name__, url_prefix="/v1/studies/<study_id>/export")
MEDIA_TYPE = "application/x-ndjson"


@export.get("")
@operator_only
def stream(study_id: str) -> Response:
    """NDJSON; `after` a report's id resumes behind it, `through` a day leaves later arrivals out."""
    pages = export_pages(current_collector(), study_id, _after(), _through())
    # The first page is read now, while an error can still become a status.
    return Response(chain([next(pages)], pages), content_type=MEDIA_TYPE)


def _after() -> bytes:
    text = request.args.get("after", "")
    try:
        after = bytes.fromhex(text)
    except ValueError:
        after = b"?"
    if text and len(after) != 16:
        raise ProblemError(PARAMETER_INVALID, "must be a report's id, 32 hexadecimal digits", "after")
    return after


def _through() -> date | None:
    text = request.args.get("through")
    if text is None:
        return None
    try:
        through = date.fromisoformat(text)
    except ValueError:
        raise ProblemError(PARAMETER_INVALID, "must be a day, YYYY-MM-DD", "through") from None
    if through >= current_collector().today():
        raise ProblemError(PARAMETER_INVALID, "must be a day that is over in UTC", "through")
    return through
