"""Stream a study's reports to the operator."""

from __future__ import annotations

from itertools import chain

from flask import Blueprint, Response

from collector.context import current_collector
from collector.exports.exporting import open_export
from collector.exports.formats import FORMATS
from collector.http.auth import requires
from collector.http.parameters import choice_parameter, past_day_parameter, report_id_parameter
from collector.operator.keys import Role

export = Blueprint("export", __name__, url_prefix="/v1/studies/<study_id>/export")


@export.get("")
@requires(Role.READ)
def stream(study_id: str) -> Response:
    """In the `format` asked for; `after` a report's id resumes behind it, `through` a day fixes it."""
    collector = current_collector()
    form = FORMATS[choice_parameter("format", list(FORMATS))]
    through = past_day_parameter("through", collector.today())
    parts = form.stream(open_export(collector, study_id, report_id_parameter("after"), through))
    collector.exports.take()
    try:
        # The first page is read now, while an error can still become a status.
        response = Response(chain([next(parts)], parts), content_type=form.media_type)
    except BaseException:
        collector.exports.give_back()
        raise
    response.call_on_close(collector.exports.give_back)
    return response
