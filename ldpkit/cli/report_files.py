"""Write fetched reports to a new file: as CSV or Parquet if its name ends so, else as NDJSON."""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import ReportError
from ldp_client.documents.fields import Day
from ldp_client.documents.report import MAX_BYTES
from schemas import Report
from schemas.disk import no_formula, replacing
from schemas.export_end import end_line

if TYPE_CHECKING:
    from summaries.decoding import Decoding

ROWS_PER_GROUP = 10_000
# The endings of tables' names.
TABLES = (".csv", ".parquet")
DAY = "day"
Cells = dict[str, str | float | None]

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


def write_reports(reports: Iterable[Report], path: str | Path) -> int:
    """Write reports to a new file as NDJSON, completely or not at all; return how many. Raises InputError."""
    with replacing(str(path), is_new=True, mode=0o600) as file:
        count = 0
        for report in reports:
            file.write(report.to_json() + "\n")
            count += 1
        # As in the export: the end line shows readers that the file is complete.
        file.write(end_line(count))
        return count


def write_table(reports: Iterable[DatedReport], path: str | Path, decoding: Decoding) -> int:
    """Write reports to a new file as CSV or Parquet. decoding: makes columns for people.

    Returns how many. Raises InputError.
    """
    with (
        replacing(str(path), is_new=True, mode=0o600) as file,
        TemporaryFile("w+", encoding="utf-8", dir=Path(path).parent) as spool,
    ):
        # 1. Keep the reports: the columns are known only after the last one, as a study may have versions.
        questions: set[str] = set()
        public: set[str] = set()
        count = 0
        for report in reports:
            count += 1
            spool.write(report.to_line() + "\n")
            questions.update(report.payloads)
            public.update(report.public)
            decoding.meet(report)
        spool.seek(0)
        rows = (
            (report, {DAY: report.day, **decoding.cells(report)})
            for report in map(DatedReport.from_line, spool)
        )
        fields, asked, shown = sorted(public), sorted(questions), {DAY: False, **decoding.columns}
        # 2. Write CSV.
        if not str(path).lower().endswith(".parquet"):
            writer = csv.writer(file, lineterminator="\n")
            columns = [f"public.{field}" for field in fields] + [f"payloads.{question}" for question in asked]
            writer.writerow(["report_id", "study", "version", "digest", *columns, *shown])
            for report, cells in rows:
                values = [report.public.get(field, "") for field in fields]
                payloads = [b64encode(report.payloads.get(question, b"")).decode() for question in asked]
                texts = [cells.get(name) for name in shown]
                texts = [no_formula(text) if isinstance(text, str) else text for text in texts]
                names = [report.id, report.study, report.version, report.digest]
                writer.writerow([*names, *values, *payloads, *texts])
            return count
        # 3. Or Parquet. In columns that do not have only numbers, numbers are texts.
        from pyarrow.parquet import ParquetWriter

        from ldpkit.cli.dataset import rows_batch, schema_of

        schema = schema_of(asked, fields, shown)
        mixed = [name for name, is_number in shown.items() if not is_number]
        with ParquetWriter(file.buffer, schema, write_page_checksum=True) as parquet:
            while group := list(islice(rows, ROWS_PER_GROUP)):
                for _, cells in group:
                    cells.update({name: str(cells[name]) for name in mixed if cells.get(name) is not None})
                parquet.write_batch(rows_batch(schema, group))
        return count
