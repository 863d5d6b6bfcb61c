"""Stream a study's reports to the operator."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from weakref import finalize

from flask import Blueprint, Response

from collector.context import current_collector
from collector.exports.formats import FORMATS
from collector.reports.paging import open_export
from collector.room import Room
from collector.storage.keys import Role
from collector.views.auth import requires
from collector.views.parameters import choice_parameter, past_day_parameter, report_id_parameter

export = Blueprint("export", __name__, url_prefix="/v1/studies/<study_id>/export")


@export.get("")
@requires(Role.READ)
def stream(study_id: str) -> Response:
    """In the `format` asked for; `after` a report's id resumes behind it, `through` a day fixes it."""
    collector = current_collector()
    form = FORMATS[choice_parameter("format", list(FORMATS))]
    through = past_day_parameter("through", collector.today())
    parts = form.stream(open_export(collector, study_id, report_id_parameter("after"), through))
    held = HeldParts(collector.exports, parts)
    # The first page is read now, while an error can still become a status.
    response = Response(chain([next(held)], held), content_type=form.media_type)
    response.call_on_close(held.close)
    return response


class HeldParts(Iterator[bytes]):
    """Parts of a stream that holds its room until it ends or is closed, or nobody has it any more."""

    def __init__(self, room: Room, parts: Iterator[bytes]) -> None:
        room.take()
        self._parts = parts
        # Once, whichever comes first.
        self.close = finalize(self, room.give_back)

    def __next__(self) -> bytes:
        try:
            return next(self._parts)
        except BaseException:
            self.close()
            raise
