"""Uploads: `accept` takes the bytes and headers of one report or a batch, and returns the answer.

A report in canonical form is read without a parser. The parser reads all other bodies, and it alone decides
what is wrong with them. In a batch, one bad report does not refuse the others.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from collector import problems
from collector.errors import problem_of
from collector.problems import ProblemError
from collector.reports import intake
from collector.reports.packing import digest_of
from collector.store import PackedReport
from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import DocumentError, ReportError
from ldp_client.documents.report import MAX_BYTES
from schemas import Report

if TYPE_CHECKING:
    from collector.context import Collector

JSON = "application/json"
JSON_HEADERS = [("Content-Type", JSON)]
ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
# What `accept` reads of a request's headers.
HEADERS = ("Content-Type", "Content-Encoding", "Authorization", intake.TICKET)
IDENTITY = "identity"
GZIP_WINDOW = 31
# Ids and noise are random, so real reports compress to a tenth at best, zeros to a thousandth. A short body
# may grow to SMALL_BYTES in any case.
MOST_GROWTH = 64
SMALL_BYTES = 1 << 16
# A body may have so many values in any case, and otherwise one for so many bytes: a payload in a report takes
# eleven at least, "q":"AA==" and a comma. Each value can take a hundred bytes of memory.
MOST_IN_SMALL = 1000
BYTES_OF_VALUE = 10
MOST_REPORTS = 100_000
# More wrong reports than this mean another format or another study: checking on would cost more than sending.
MOST_WRONG = 100
LONGEST_ID = 64

Checked = Sequence[PackedReport | ProblemError]


class Answer(NamedTuple):
    """An HTTP answer, without the headers that every answer has."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def accept(
    collector: Collector, study_id: str, report_id: str | None, body: bytes, headers: Mapping[str, str]
) -> Answer:
    """Return the answer to an upload, whose reports are durable by then.

    Args:
        collector: takes the reports.
        study_id: from the address; it could be a study's id.
        report_id: from the address; None for a batch.
        body: as it was sent.
        headers: the sent headers among HEADERS.

    Returns:
        The answer; a refusal is a problem document, and is counted.
    """
    try:
        require_json(headers.get("Content-Type", ""))
        encoding = headers.get("Content-Encoding", IDENTITY).lower()
        if report_id is None:
            status, document = 200, _accept_batch(collector, study_id, body, encoding)
        else:
            report = _read_report(collector, study_id, report_id, body, encoding)
            along = headers.get(intake.TICKET), headers.get("Authorization")
            receipt = intake.submit_one(collector, study_id, report, *along)
            status = 201 if receipt is intake.Receipt.STORED else 200
            document = {"id": report_id, "result": receipt.value}
    except Exception as error:
        problem = problem_of(error)
        collector.count_refusal(problem, study_id)
        status, fields, text = problem.answer()
        return Answer(status, [("Content-Type", problems.MEDIA_TYPE), *fields.items()], text.encode())
    return Answer(status, JSON_HEADERS, ENCODER.encode(document).encode() + b"\n")


def require_json(content_type: str) -> None:
    """Raise ProblemError if the body has another media type; without a type, JSON is assumed."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in ("", JSON):
        raise ProblemError(problems.MEDIA_TYPE_UNSUPPORTED, f"the body is {media_type[:64]!r}")


@contextmanager
def decoded(collector: Collector, body: bytes, encoding: str, limit: int) -> Iterator[bytes]:
    """Yield the body without its content encoding; the block parses and checks it.

    The bytes of all threads' blocks together are bounded. Raises ProblemError for more than `limit` bytes,
    and if too much is being parsed.
    """
    with collector.parsing.hold(inflated_limit(len(body), encoding, limit)):
        yield inflate(body, encoding, limit)


def inflated_limit(length: int, encoding: str, limit: int) -> int:
    """Return the most bytes that a body of that length and encoding may inflate to, at most `limit`."""
    return length if encoding == IDENTITY else min(limit, max(SMALL_BYTES, MOST_GROWTH * length))


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Return the body without its encoding: identity or gzip.

    Raises ProblemError for another encoding, for invalid data, and for more than `limit` bytes or MOST_GROWTH
    times the body's length.
    """
    if encoding == IDENTITY:
        return body
    if encoding != "gzip":
        raise ProblemError(problems.MEDIA_TYPE_UNSUPPORTED, f"the content encoding is {encoding[:64]!r}")
    limit = inflated_limit(len(body), encoding, limit)
    stream = zlib.decompressobj(GZIP_WINDOW)
    try:
        inflated = stream.decompress(body, limit + 1)
    except zlib.error:
        raise ProblemError(problems.MALFORMED_ENCODING, "the body is not gzip") from None
    if len(inflated) > limit:
        raise ProblemError(problems.BODY_TOO_LARGE, f"the inflated body is above {limit} bytes")
    if not stream.eof or stream.unused_data:
        raise ProblemError(problems.MALFORMED_ENCODING, "the body is not one whole gzip member")
    return inflated


def parse_body(body: bytes) -> Any:
    """Parse JSON. Raises ProblemError."""
    try:
        return parse_json(body, DocumentError, len(body))
    except DocumentError as error:
        raise ProblemError(problems.MALFORMED_JSON, error.problem, error.field) from None


def _parse_reports(body: bytes) -> Any:
    """Parse a body of reports. Raises ProblemError, also for more values than reports can have."""
    most = MOST_IN_SMALL + len(body) // BYTES_OF_VALUE
    # Each value but the first follows a comma or an opening bracket.
    if sum(map(body.count, (b",", b"[", b"{"))) > most:
        raise ProblemError(
            problems.BODY_TOO_LARGE, f"has more than {most} values, as no reports of its length have"
        )
    return parse_body(body)


def _read_report(
    collector: Collector, study_id: str, report_id: str, body: bytes, encoding: str
) -> PackedReport:
    """Read and check a single report. Raises ReportError or ProblemError."""
    rules = collector.rules.find_in_use(study_id, digest_of(body))
    if rules is not None and encoding == IDENTITY:
        packed = rules.form.read(body)
        if packed is not None and packed.id.hex() == report_id:
            return packed
    collector.limits.let_in(study_id)
    with decoded(collector, body, encoding, min(MAX_BYTES, collector.settings.body_limit)) as text:
        report = Report.from_document(_parse_reports(text))
        if report.id != report_id:
            raise ReportError(
                "id", "differs from the id in the address", code="report.id_differs_from_address"
            )
        return intake.check(collector, study_id, report)


def _accept_batch(collector: Collector, study_id: str, body: bytes, encoding: str) -> dict[str, Any]:
    """Store the valid reports of a batch; return what became of each.

    The answer is {"stored": n, "duplicates": n, "failed": [{"id", "type", "detail", "field"}, ...]}.
    Raises ProblemError for a body that is not a batch, for a study that is not published, and if more than
    MOST_WRONG reports cannot be taken.
    """
    # 1. Read and check. `members` stays empty for a batch in canonical form.
    members: list[Any] = []
    checked: Checked | None = None
    with decoded(collector, body, encoding, collector.settings.body_limit) as text:
        rules = collector.rules.find_in_use(study_id, digest_of(text))
        if rules is not None:
            intake.refuse_batch(rules)
            checked = rules.form.read_batch(text)
        if checked is None:
            collector.limits.let_in(study_id)
            members = _members_of(_parse_reports(text))
            checked = _check_members(collector, study_id, members)
    # 2. Store.
    good = [report for report in checked if isinstance(report, PackedReport)]
    outcomes = intake.submit(collector, study_id, good)
    if len(good) < len(checked):
        stored = iter(outcomes)
        outcomes = [report if isinstance(report, ProblemError) else next(stored) for report in checked]
    # 3. Name the failures.
    accepted, duplicates = intake.count(collector, study_id, outcomes)
    failed = []
    if accepted + duplicates < len(outcomes):
        stated = [_stated_id(member) for member in members] or [report.id.hex() for report in good]
        failed = _failures(stated, outcomes)
    return {"stored": accepted, "duplicates": duplicates, "failed": failed}


def _members_of(document: Any) -> list[Any]:
    if not isinstance(document, dict) or not isinstance(document.get("reports"), list):
        raise ProblemError(problems.BATCH_INVALID, "must be an object with a list of reports", "reports")
    unknown = sorted(set(document) - {"reports"})
    if unknown:
        raise ProblemError(problems.BATCH_INVALID, "unknown field", unknown[0][:64])
    members: list[Any] = document["reports"]
    if len(members) > MOST_REPORTS:
        raise ProblemError(problems.BODY_TOO_LARGE, f"has more than {MOST_REPORTS} reports")
    return members


def _check_members(collector: Collector, study_id: str, members: Sequence[Any]) -> Checked:
    """Return each report, or why it is refused. Raises ProblemError if the whole batch is refused."""
    checked: list[PackedReport | ProblemError] = []
    wrong = 0
    for member in members:
        try:
            report = intake.check(collector, study_id, Report.from_document(member))
            intake.refuse_batch(collector.rules.find(study_id, report.version))
            checked.append(report)
        except (ReportError, ProblemError) as error:
            problem = problem_of(error)
            if problem.kind in (problems.STUDY_UNKNOWN, problems.TICKET_NEEDED):
                raise
            if wrong == MOST_WRONG:
                detail = f"more than {MOST_WRONG} reports cannot be taken; nothing was stored"
                failed = _failures(map(_stated_id, members), checked)
                raise ProblemError(problems.BATCH_WRONG, detail, "reports", more={"failed": failed}) from None
            checked.append(problem)
            wrong += 1
    return checked


def _stated_id(member: Any) -> str | None:
    report_id = member.get("id") if isinstance(member, dict) else None
    return report_id[:LONGEST_ID] if isinstance(report_id, str) else None


def _failures(stated: Iterable[str | None], outcomes: Iterable[object]) -> list[dict[str, Any]]:
    """Describe the reports of a batch that failed. stated: the id of each report, or None."""
    return [
        {
            "id": report_id,
            "type": outcome.kind.type,
            "detail": outcome.detail,
            "field": f"reports[{index}].{outcome.field or ''}".rstrip("."),
        }
        for index, (report_id, outcome) in enumerate(zip(stated, outcomes))
        if isinstance(outcome, ProblemError)
    ]
