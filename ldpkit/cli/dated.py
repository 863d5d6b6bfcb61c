"""A report with the day on which the collector accepted it, as exports for people have it."""

from __future__ import annotations

from typing import Any

from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import ReportError
from ldp_client.documents.fields import Day
from ldp_client.documents.report import MAX_BYTES
from schemas import Report

# Bytes that a line has around its report.
MOST_AROUND = 64


class DatedReport(Report):
    """A report. day: its day of arrival, in UTC."""

    day = ""

    @classmethod
    def from_line(cls, line: str | bytes) -> DatedReport:
        """Read a line of a dated export. Raises ReportError."""
        document: Any = parse_json(line, ReportError, MAX_BYTES + MOST_AROUND)
        if not isinstance(document, dict) or set(document) != {"day", "report"}:
            raise ReportError("", "must be in an object with day and report", code="report.not_dated")
        report = cls.from_document(document["report"])
        report.day = Day().read(document["day"], "day", ReportError)
        return report

    def to_line(self) -> str:
        """Return the line of a dated export, without its line end."""
        return f'{{"day":"{self.day}","report":{self.to_json()}}}'
