"""Exports: every stored report of a study, page by page, in the order of the random ids.

Each page is read in its own short transaction, so that SQLite's write-ahead log stays small however slow the
reader is. A report acknowledged before the export began is in it exactly once, unless it is withdrawn
meanwhile. A report that arrives meanwhile may be in it. The export breaks off if reports are deleted
meanwhile because their time is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from collector import store
from collector.errors import problem_of
from collector.problems import broken_off, deleted_study
from collector.reports.rules import Rules, require_same
from collector.store import PackedReport
from schemas.export_end import end_line

if TYPE_CHECKING:
    from collector.context import Collector

MEDIA_TYPE = "application/x-ndjson"
# Of an export: a line for each report, or one with its day too.
FORMATS = ("ndjson", "dated")
PAGE_REPORTS = 10_000
PAGE_BYTES = 4 << 20


class CutOffError(Exception):
    """An export that cannot be read to its end; the log has the reason."""


class Export(NamedTuple):
    """One export. parts: its text, a page at a time, never empty; its last line counts the reports.

    number: the study's key. deletions: the study's count of deletions; the export ends if it rises.
    """

    number: int
    deletions: int
    parts: Iterator[bytes]


def open_export(
    collector: Collector,
    study_id: str,
    after: bytes = b"",
    *,
    dated: bool = False,
    deletions: int | None = None,
) -> Export:
    """Open an export of the reports with ids above `after`. dated: with their days.

    deletions: the count of the export that this one continues, or None. Raises ProblemError for a study that
    is not published. So does reading the first part if the study is deleted, or reports were deleted since: a
    partial export would pass for a complete one. Reading another part raises CutOffError for any failure.
    """
    # 1. What the export is of.
    database = collector.database
    with database.read() as session:
        study = store.require_study(session, study_id)
        digests = store.document_digests(session, study.number)
    if deletions not in (None, study.deletions):
        raise broken_off(study_id)
    rules = {version: collector.rules.find(study_id, version) for version in sorted(digests)}
    require_same(digests, rules.values())
    limit = page_limit(rules.values())

    # 2. Its pages, and their text.
    def read_page(last: bytes) -> list[store.StoredRow]:
        with database.read() as session:
            page = store.report_page(session, study.number, max(rules), last, limit, dated)
            # Read after the page: PostgreSQL shows each statement all earlier commits.
            state = store.require_study(session, study_id)
        if state.deleted:
            raise deleted_study(study_id)
        if state.deletions != study.deletions:
            raise broken_off(study_id)
        return page

    def line(report_id: bytes, version: int, payloads: bytes, day: object = None) -> bytes:
        text = rules[version].form.write(PackedReport(report_id, version, payloads))
        return text if day is None else b'{"day":"%s","report":%s}' % (str(day).encode(), text)

    def parts() -> Iterator[bytes]:
        last, count = after, 0
        while page := read_page(last):
            last, count = page[-1][0], count + len(page)
            # A page at a time: servers and readers do some work for each part.
            yield b"".join([line(*row) + b"\n" for row in page])
        yield end_line(count).encode()

    return Export(study.number, study.deletions, _cut_off(parts()))


def _cut_off(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts. A failure after the first one raises CutOffError."""
    yield next(parts)
    try:
        yield from parts
    except Exception as error:
        problem = problem_of(error)
        # Servers log an exception that leaves a stream. Its text and causes may quote reports.
        raise CutOffError(f"an export was cut off: {problem.kind.name}") from None


def page_limit(rules: Iterable[Rules]) -> int:
    """Return how many reports to hold at once, whatever version they answer."""
    return max(1, min(PAGE_REPORTS, PAGE_BYTES // max(version.layout.size for version in rules)))
