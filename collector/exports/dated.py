"""A report with the day on which the collector took it, as an export has them for people."""

from __future__ import annotations

from typing import Any

from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import ReportError
from ldp_client.documents.fields import Day
from ldp_client.documents.report import MAX_BYTES
from schemas import Report

# What stands around a report.
MOST_AROUND = 64


class DatedReport(Report):
    """A report. day: on which it came, in UTC."""

    day = ""

    @classmethod
    def from_line(cls, line: str | bytes) -> DatedReport:
        """Read a line of a dated export. Raises ReportError."""
        found: Any = parse_json(line, ReportError, MAX_BYTES + MOST_AROUND)
        if not isinstance(found, dict) or set(found) != {"day", "report"}:
            raise ReportError("", "must stand beside its day", code="report.not_dated")
        report: DatedReport = cls.from_document(found["report"])  # type: ignore[assignment]
        report.day = Day().read(found["day"], "day", ReportError)
        return report

    def to_line(self) -> str:
        """Write that line, without its end."""
        return dated_line(self.day.encode(), self.to_json().encode()).decode()


def dated_line(day: bytes, report: bytes) -> bytes:
    """A report's text and its day, as one JSON text."""
    return b'{"day":"%s","report":%s}' % (day, report)
