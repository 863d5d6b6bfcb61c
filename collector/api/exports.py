"""Exports: a study's reports as a stream, or their running summary, which is all that a posterior needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from weakref import finalize

from flask import Blueprint, Response, make_response, request

from collector import problems
from collector.api.auth import acting_key, requires
from collector.api.openapi import (
    AFTER,
    DELETIONS,
    EXPORTED,
    FORMAT,
    KEY,
    STUDY_ID,
    THROUGH,
    VERSION,
    Operation,
    json_of,
)
from collector.api.parameters import (
    choice_parameter,
    count_parameter,
    past_day_parameter,
    report_id_parameter,
    whole_parameter,
)
from collector.context import current_collector
from collector.exports.formats import FORMATS
from collector.keys import Role
from collector.limiter import Limiter
from collector.reports.paging import open_export
from collector.reports.sums import summary_text
from collector.store import count_withdrawn, note_export, withdrawn_since_export
from schemas.export_end import DELETIONS_HEADER, WITHDRAWN_HEADER

export = Blueprint("export", __name__, url_prefix="/v1/studies/<study_id>/export")
summary = Blueprint("summary", __name__, url_prefix="/v1/studies/<study_id>/summary")


@export.get("")
@requires(Role.READ)
def stream(study_id: str) -> Response:
    """Stream the reports in the `format` asked for.

    `after` a report's id resumes the stream, and `through` a past day fixes its contents. A client that
    resumes sends `deletions`, the count in the earlier answer's header. Another header says how many reports
    were withdrawn since the last export: earlier copies still have these.
    """
    collector = current_collector()
    form = FORMATS[choice_parameter("format", list(FORMATS))]
    through = past_day_parameter("through", collector.today())
    after = report_id_parameter("after")
    deletions = count_parameter("deletions")
    found = open_export(collector, study_id, after, through, dated=form.dated, deletions=deletions)
    with collector.database.read() as session:
        withdrawn = count_withdrawn(session, found.number)
        since = withdrawn_since_export(session, found.number, withdrawn)
    parts = form.stream(found)
    if not after:
        # A resumed export may have reports that were withdrawn since it began, so it does not count as a new
        # copy.
        note = partial(note_export, study=found.number, withdrawn=withdrawn)
        parts = _noting_the_end(parts, partial(collector.database.act, note))
    held = HeldParts(collector.exports, parts)
    # Read the first page now, while an error can still become a status.
    response = Response(chain([next(held)], held), content_type=form.media_type)
    response.headers[DELETIONS_HEADER] = str(found.deletions)
    response.headers[WITHDRAWN_HEADER] = str(since)
    response.call_on_close(held.close)
    collector.daily.write(acting_key(), "export", study_id)
    return response


def _noting_the_end(parts: Iterator[bytes], note: Callable[[], object]) -> Iterator[bytes]:
    yield from parts
    note()


class HeldParts(Iterator[bytes]):
    """Parts of a stream that holds its room until it ends, is closed, or is garbage-collected."""

    def __init__(self, room: Limiter, parts: Iterator[bytes]) -> None:
        room.take()
        self._parts = parts
        # `finalize` gives the room back only once.
        self.close = finalize(self, room.give_back)

    def __next__(self) -> bytes:
        try:
            return next(self._parts)
        except BaseException:
            self.close()
            raise


@summary.get("")
@requires(Role.READ)
def read(study_id: str) -> Response:
    """Return the summary document of the reports of `version`, by default the current one."""
    collector = current_collector()
    text = summary_text(collector, study_id, whole_parameter("version"), collector.counting)
    collector.daily.write(acting_key(), "read summary", study_id)
    response = make_response(text)
    response.content_type = "application/json"
    response.add_etag()
    response.make_conditional(request)
    return response


OPERATIONS = (
    Operation(
        "get",
        "/v1/studies/{study_id}/export",
        "exportReports",
        "Every report in the order of the ids; `after` and `deletions` resume, `through` a past day fixes "
        "the contents.",
        {
            200: (
                "The reports; NDJSON ends with a line that counts them, no form cut off reads well",
                EXPORTED,
            )
        },
        (
            *KEY,
            problems.STUDY_UNKNOWN,
            problems.STUDY_DELETED,
            problems.REPORTS_DELETED,
            problems.PARAMETER_INVALID,
            problems.OVERLOADED,
        ),
        (STUDY_ID, FORMAT, AFTER, DELETIONS, THROUGH),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/summary",
        "readSummary",
        "All that a posterior needs of one version's reports, as they are now.",
        {200: ("The summary", json_of("Summary")), 304: ("Unchanged", {})},
        (
            *KEY,
            problems.STUDY_UNKNOWN,
            problems.SUMMARY_IMPOSSIBLE,
            problems.SUMMARY_TOO_COSTLY,
            problems.STUDY_DELETED,
            problems.PARAMETER_INVALID,
            problems.OVERLOADED,
            problems.UNAVAILABLE,
        ),
        (STUDY_ID, VERSION),
    ),
)
