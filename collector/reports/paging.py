"""Exports: every stored report of a study, page by page, in the order of the random ids.

Each page is read in its own short transaction, so that SQLite's write-ahead log stays small however slow the
reader is. A report acknowledged before the export began is in it exactly once, unless it is withdrawn
meanwhile. A report that arrives meanwhile may be in it. The export breaks off if reports are deleted
meanwhile because their time is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

# A row of a dated export ends with the day.
Page = list[store.StoredRow]


class CutOffError(Exception):
    """An export that cannot be read to its end; the log has the reason."""


@dataclass(frozen=True)
class Export:
    """One export. rules: of every version that its reports may answer. pages: never empty.

    number: the study's key. deletions: the study's count of deletions; the export ends if it rises.
    """

    number: int
    rules: Mapping[int, Rules]
    pages: Iterator[Page]
    deletions: int

    def stream(self) -> Iterator[bytes]:
        """Yield one report a line. The last line counts them: an export without it was cut off.

        A failure after the first page raises CutOffError.
        """
        parts = self._lines()
        yield next(parts)
        try:
            yield from parts
        except Exception as error:
            problem = problem_of(error)
            # Servers log an exception that leaves a stream. Its text and causes may quote reports.
            raise CutOffError(f"an export was cut off: {problem.kind.name}") from None

    def _lines(self) -> Iterator[bytes]:
        count = 0
        for page in self.pages:
            count += len(page)
            # Yield a page at a time: servers and readers do some work for each part.
            yield b"".join([self._line(*row) + b"\n" for row in page])
        yield end_line(count).encode()

    def _line(self, report_id: bytes, version: int, payloads: bytes, day: object = None) -> bytes:
        line = self.rules[version].form.write(PackedReport(report_id, version, payloads))
        return line if day is None else b'{"day":"%s","report":%s}' % (str(day).encode(), line)


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
    is not published. Reading its pages raises it too if the study is deleted, or reports were deleted since:
    a partial export would pass for a complete one.
    """
    database = collector.database
    with database.read() as session:
        study = store.require_study(session, study_id)
        digests = store.document_digests(session, study.number)
    if deletions not in (None, study.deletions):
        raise broken_off(study_id)
    number, deletions = study.number, study.deletions
    rules = {version: collector.rules.find(study_id, version) for version in sorted(digests)}
    require_same(digests, rules.values())
    limit = page_limit(rules.values())

    def pages(last: bytes) -> Iterator[Page]:
        while True:
            with database.read() as session:
                page = store.report_page(session, number, max(rules), last, limit, dated)
                # Read after the page: PostgreSQL shows each statement all earlier commits.
                state = store.require_study(session, study_id)
            if state.deleted:
                raise deleted_study(study_id)
            if state.deletions != deletions:
                raise broken_off(study_id)
            if not page:
                return
            yield page
            last = page[-1][0]

    return Export(number, rules, pages(after), deletions)


def page_limit(rules: Iterable[Rules]) -> int:
    """Return how many reports to hold at once, whatever version they answer."""
    return max(1, min(PAGE_REPORTS, PAGE_BYTES // max(version.layout.size for version in rules)))
