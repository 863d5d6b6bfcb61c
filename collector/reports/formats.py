"""Formats of an export, each a stream of lines made page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from collector.db import problem_of
from collector.reports.paging import Export
from collector.store import PackedReport
from schemas.export_end import end_line

MEDIA_TYPE = "application/x-ndjson"


class CutOffError(Exception):
    """An export that cannot be read to its end; the log has the reason."""


class Format(NamedTuple):
    """line: makes a report's line of its row. dated: whether the rows need the reports' days."""

    line: Callable[[Export, Sequence[Any]], bytes]
    dated: bool = False

    def stream(self, export: Export) -> Iterator[bytes]:
        """Yield one report a line. The last line counts them: an export without it was cut off.

        A failure after the first page raises CutOffError.
        """
        parts = self._lines(export)
        yield next(parts)
        try:
            yield from parts
        except Exception as error:
            problem = problem_of(error)
            # Servers log an exception that leaves a stream. Its text and causes may quote reports.
            raise CutOffError(f"an export was cut off: {problem.kind.name}") from None

    def _lines(self, export: Export) -> Iterator[bytes]:
        count = 0
        for page in export.pages:
            count += len(page)
            # Yield a page at a time: servers and readers do some work for each part.
            yield b"".join([self.line(export, row) + b"\n" for row in page])
        yield end_line(count).encode()


def _plain(export: Export, row: Sequence[Any]) -> bytes:
    report = PackedReport._make(row)
    return export.rules[report.version].form.write(report)


def _dated(export: Export, row: Sequence[Any]) -> bytes:
    return b'{"day":"%s","report":%s}' % (str(row[3]).encode(), _plain(export, row[:3]))


FORMATS = {"ndjson": Format(_plain), "dated": Format(_dated, dated=True)}
