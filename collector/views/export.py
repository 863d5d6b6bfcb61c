"""Stream a study's reports to the operator."""

from __future__ import annotations

from itertools import chain

from flask import Blueprint, Response

from collector.auth import operator_only
from collector.context import current_collector
from collector.exporting import export_pages
from collector.parameters import past_day_parameter, report_id_parameter

export = Blueprint("export", __name__, url_prefix="/v1/studies/<study_id>/export")
MEDIA_TYPE = "application/x-ndjson"


@export.get("")
@operator_only
def stream(study_id: str) -> Response:
    """NDJSON; `after` a report's id resumes behind it, `through` a day leaves later arrivals out."""
    collector = current_collector()
    through = past_day_parameter("through", collector.today())
    pages = export_pages(collector, study_id, report_id_parameter("after"), through)
    # The first page is read now, while an error can still become a status.
    return Response(chain([next(pages)], pages), content_type=MEDIA_TYPE)
