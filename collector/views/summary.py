"""The running summary, for a posterior without an export."""

from __future__ import annotations

from flask import Blueprint, Response, make_response, request

from collector.context import current_collector
from collector.reports.running_summary import read_summary
from collector.storage.keys import Role
from collector.views.auth import requires
from collector.views.parameters import whole_parameter

summary = Blueprint("summary", __name__, url_prefix="/v1/studies/<study_id>/summary")


@summary.get("")
@requires(Role.READ)
def read(study_id: str) -> Response:
    """The summary document of the current version's reports, or of those of `version`."""
    response = make_response(
        read_summary(current_collector(), study_id, whole_parameter("version")).to_json()
    )
    response.content_type = "application/json"
    response.add_etag()
    response.make_conditional(request)
    return response
