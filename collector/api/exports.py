"""Exports: a study's reports as a stream, or their running summary, which is all that a posterior needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from itertools import chain
from weakref import finalize

from flask import Response, make_response, request

from collector.api.auth import acting_key
from collector.api.openapi import Api
from collector.api.parameters import AFTER, DELETIONS, FORMAT, THROUGH, VERSION
from collector.context import current_collector
from collector.exports.formats import FORMATS, MEDIA_TYPE
from collector.keys import Role
from collector.limiter import Limiter
from collector.problems import PARAMETER_INVALID, ProblemError
from collector.reports.paging import open_export
from collector.reports.sums import summary_text
from collector.store import count_withdrawn, note_export, withdrawn_since_export
from schemas.export_end import DELETIONS_HEADER, WITHDRAWN_HEADER

exports = Api("exports", __name__)


@exports.operation(
    "get",
    "/v1/studies/{study_id}/export",
    media_type=MEDIA_TYPE,
    role=Role.READ,
    query=(FORMAT, AFTER, DELETIONS, THROUGH),
)
def export_reports(
    study_id: str, format: str | None, after: bytes | None, deletions: int | None, through: date | None
) -> Response:
    """Stream every report in the order of the ids; the last line counts them, so that a cut is noticed.

    `after` a report's id resumes the stream, and `through` a past day fixes its contents. A client that
    resumes sends `deletions`, the count in the earlier answer's header. Another header says how many reports
    were withdrawn since the last export: earlier copies still have these.
    """
    collector = current_collector()
    form = FORMATS[format or "ndjson"]
    if through is not None and through >= collector.today():
        raise ProblemError(PARAMETER_INVALID, "must be a day that is over in UTC", THROUGH.name)
    export = open_export(collector, study_id, after or b"", through, dated=form.dated, deletions=deletions)
    with collector.database.read() as session:
        withdrawn = count_withdrawn(session, export.number)
        since = withdrawn_since_export(session, export.number, withdrawn)
    parts = form.stream(export)
    if not after:
        # A resumed export may have reports that were withdrawn since it began, so it does not count as a new
        # copy.
        note = partial(note_export, study=export.number, withdrawn=withdrawn)
        parts = _noting_the_end(parts, partial(collector.database.act, note))
    held = HeldParts(collector.exports, parts)
    # Read the first page now, while an error can still become a status.
    response = Response(chain([next(held)], held), content_type=MEDIA_TYPE)
    response.headers[DELETIONS_HEADER] = str(export.deletions)
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


@exports.operation(
    "get",
    "/v1/studies/{study_id}/summary",
    "Summary",
    statuses=(200, 304),
    role=Role.READ,
    query=(VERSION,),
)
def read_summary(study_id: str, version: int | None) -> Response:
    """Return all that a posterior needs of one version's reports, by default the current one's."""
    collector = current_collector()
    text = summary_text(collector, study_id, version)
    collector.daily.write(acting_key(), "read summary", study_id)
    response = make_response(text)
    response.content_type = "application/json"
    response.add_etag()
    response.make_conditional(request)
    return response
