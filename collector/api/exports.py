"""Exports: a study's reports as a stream, or their running summary, which is all that a posterior needs."""

from collections.abc import Generator
from itertools import chain

from flask import Response, make_response, request

from collector import audit_log, store
from collector.api.auth import acting_key
from collector.api.openapi import Api
from collector.api.parameters import AFTER, DELETIONS, FORMAT, VERSION
from collector.context import current_collector
from collector.keys import Role
from collector.problems import SUMMARY_IMPOSSIBLE, SUMMARY_TOO_COSTLY, ProblemError, deleted_study
from collector.reports import sums
from collector.reports.paging import MEDIA_TYPE, open_export
from collector.reports.rules import require_same
from collector.store import count_withdrawn
from schemas.export_end import DELETIONS_HEADER, WITHDRAWN_HEADER
from summaries.summary import NEEDS_REPORTS

exports = Api("exports", __name__)


@exports.operation(
    "get",
    "/v1/studies/{study_id}/export",
    media_type=MEDIA_TYPE,
    role=Role.READ,
    query=(FORMAT, AFTER, DELETIONS),
)
def export_reports(study_id: str, format: str | None, after: bytes | None, deletions: int | None) -> Response:
    """Stream every report in the order of the ids; the last line counts them, so that a cut is noticed.

    `after` a report's id resumes the stream. A client that resumes sends `deletions`, the count in the
    earlier answer's header. Another header says how many reports were withdrawn up to now: earlier
    copies may still have them.
    """
    collector = current_collector()
    export = open_export(collector, study_id, after or b"", dated=format == "dated", deletions=deletions)
    with collector.database.read() as session:
        withdrawn = count_withdrawn(session, export.number)

    def stream() -> Generator[bytes, None, None]:
        # Python also ends a generator that no reader ends or closes.
        with collector.exports.hold():
            yield from export.parts

    parts = stream()
    # Read the first page now, while an error can still become a status.
    response = Response(chain([next(parts)], parts), content_type=MEDIA_TYPE)
    response.headers[DELETIONS_HEADER] = str(export.deletions)
    response.headers[WITHDRAWN_HEADER] = str(withdrawn)
    response.call_on_close(parts.close)
    key, before = acting_key().name, f"{withdrawn} withdrawn before"
    audit_log.record_daily(collector.database, collector.writer.act, key, audit_log.EXPORT, study_id, before)
    return response


@exports.operation(
    "get", "/v1/studies/{study_id}/summary", "Summary", statuses=(200, 304), role=Role.READ, query=(VERSION,)
)
def read_summary(study_id: str, version: int | None) -> Response:
    """Return all that a posterior needs of one version's reports, by default the current one's."""
    # 1. The version.
    collector = current_collector()
    with collector.database.read() as session:
        is_deleted = store.require_study(session, study_id).deleted
        document = store.require_document(session, study_id, version)
    if is_deleted:
        raise deleted_study(study_id)
    rules = collector.rules.find(study_id, document.version)
    require_same({document.version: document.digest}, [rules])
    # 2. Its sums, if they are kept.
    if rules.study.protocol is not None:
        raise ProblemError(SUMMARY_IMPOSSIBLE, "its total comes from `ldpkit node close`", "protocol")
    for question in rules.tally.needs_reports:
        raise ProblemError(SUMMARY_IMPOSSIBLE, NEEDS_REPORTS, f"questions.{question}")
    if not rules.tally.is_kept:
        raise ProblemError(SUMMARY_TOO_COSTLY, "no summary is kept: it would slow down each upload")
    with collector.database.read() as session:
        kept = sums.read(session, document.study, document.version, rules.tally.size)
    # 3. The answer.
    audit_log.record_daily(
        collector.database, collector.writer.act, acting_key().name, "read summary", study_id
    )
    response = make_response(rules.tally.summary(kept).to_json())
    response.content_type = "application/json"
    response.add_etag()
    response.make_conditional(request)
    return response
