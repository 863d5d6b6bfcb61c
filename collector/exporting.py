"""Exports: every stored report of a study as NDJSON, in the order of the random ids.

Each page is read in a short transaction of its own, so that SQLite's write-ahead log stays small
however slow the reader is. A report acknowledged before the export began is in it exactly once; one
that arrives meanwhile may be. With `through`, a day that is over, the contents are fixed. The last
line is {"format": "ldpkit.export-end/1", "reports": N}: without it the export was cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from collector import queries
from collector.end_line import end_line
from collector.packing import PackedReport
from collector.publishing import unknown_study

if TYPE_CHECKING:
    from collector.context import Collector

PAGE_REPORTS = 1000
PAGE_BYTES = 1 << 20


def export_pages(
    collector: Collector, study_id: str, after: bytes = b"", through: date | None = None
) -> Iterator[str]:
    """NDJSON, page by page, of the reports with ids above `after`; the last page is the end line.

    Raises ProblemError for a study that is not published.
    """
    number, limit = _number_and_limit(collector, study_id)
    count = 0
    while True:
        with collector.database.read() as session:
            page = queries.report_page(session, number, after, through, limit)
        if not page:
            break
        after = page[-1].id
        count += len(page)
        yield "".join(_line(collector, study_id, report) for report in page)
    yield end_line(count)


def _number_and_limit(collector: Collector, study_id: str) -> tuple[int, int]:
    """The study's number, and how many reports make a page."""
    with collector.database.read() as session:
        document = queries.find_document(session, study_id)
    if document is None:
        raise unknown_study(study_id)
    size = collector.rules.find(study_id, document.version).layout.size
    return document.study, max(1, min(PAGE_REPORTS, PAGE_BYTES // size))


def _line(collector: Collector, study_id: str, packed: PackedReport) -> str:
    return collector.rules.find(study_id, packed.version).unpack(packed).to_json() + "\n"
