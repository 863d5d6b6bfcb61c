"""Write fetched reports to a file: as CSV or Parquet if its name ends so, else as NDJSON."""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Generic, NamedTuple, TypeVar

from collector.exports.dated import DatedReport
from ldp_client.files.disk import STREAM, replacing
from ldp_client.files.tables import no_formula
from schemas import Report
from schemas.export_end import end_line

if TYPE_CHECKING:
    from summaries.decoding import Decoding

ROWS_PER_GROUP = 10_000
DAY = "day"
Written = TypeVar("Written", bound=Report)
Cells = dict[str, str | float | None]


class Names(NamedTuple):
    """Names of columns.

    Attributes:
        questions: the columns of questions.
        public: the columns of public fields.
        shown: the other columns, for people, and whether each has numbers.
    """

    questions: Sequence[str]
    public: Sequence[str]
    shown: Mapping[str, bool]


def write_reports(reports: Iterable[Report], path: Path) -> int:
    """Write reports to `path`, completely or not at all; return how many.

    Raises InputError when the file cannot be written. Parquet needs pyarrow.
    """
    write = TABLES.get(path.suffix.lower())
    if write is not None:
        return _write_table(reports, path, PLAIN, write)
    with replacing(str(path), is_new=True, private=True) as file:
        count = 0
        for report in reports:
            file.write(report.to_json() + "\n")
            count += 1
        # As in the export: the end line shows readers that the file is complete.
        file.write(end_line(count))
        return count


def write_decoded(reports: Iterable[DatedReport], path: Path, decoding: Decoding) -> int:
    """Write a table that also has decoded columns for people, and the day. A stream gets CSV."""
    return _write_table(reports, path, _decoded(decoding), TABLES.get(path.suffix.lower(), _write_csv))


class Form(NamedTuple, Generic[Written]):
    """The columns for people that a table of reports has, besides the columns that are read back.

    Attributes:
        line: turns a report into a line, which is kept until the last report has arrived.
        read: turns the line back into the report.
        meet: sees each report before `columns` is called.
        columns: returns the columns for people, and whether each has numbers.
        cells: returns a report's cells.
    """

    line: Callable[[Written], str]
    read: Callable[[str], Written]
    meet: Callable[[Written], None]
    columns: Callable[[], Mapping[str, bool]]
    cells: Callable[[Written], Cells]


PLAIN: Form[Report] = Form(
    Report.to_json, Report.from_json, lambda _report: None, lambda: {}, lambda _report: {}
)


def _decoded(decoding: Decoding) -> Form[DatedReport]:
    return Form(
        DatedReport.to_line,
        DatedReport.from_line,
        decoding.meet,
        lambda: {DAY: False, **decoding.columns},
        lambda report: {DAY: report.day, **decoding.cells(report)},
    )


def _write_table(
    reports: Iterable[Written],
    path: Path,
    form: Form[Written],
    write: Callable[[Names, Iterator[tuple[Report, Cells]], IO[str]], None],
) -> int:
    with (
        replacing(str(path), is_new=True, private=True) as file,
        TemporaryFile("w+", encoding="utf-8", dir=None if str(path) == STREAM else path.parent) as spool,
    ):
        # The questions are known only after the last report, because a study may have versions.
        questions: set[str] = set()
        public: set[str] = set()
        count = 0
        for report in reports:
            count += 1
            spool.write(form.line(report) + "\n")
            questions.update(report.payloads)
            public.update(report.public)
            form.meet(report)
        spool.seek(0)
        again = map(form.read, spool)
        names = Names(sorted(questions), sorted(public), form.columns())
        write(names, ((report, form.cells(report)) for report in again), file)
        return count


def _write_csv(names: Names, reports: Iterator[tuple[Report, Cells]], file: IO[str]) -> None:
    from collector.exports.formats import csv_header

    writer = csv.writer(file, lineterminator="\n")
    questions, public, shown = names
    writer.writerow([*csv_header(questions, public), *shown])
    for report, found in reports:
        values = [report.public.get(field, "") for field in public]
        cells = [b64encode(report.payloads.get(question, b"")).decode() for question in questions]
        said = [_cell(found.get(name)) for name in shown]
        writer.writerow([report.id, report.study, report.version, report.digest, *values, *cells, *said])


def _cell(value: str | float | None) -> str | float:
    if value is None:
        return ""
    return no_formula(value) if isinstance(value, str) else value


def _write_parquet(names: Names, reports: Iterator[tuple[Report, Cells]], file: IO[str]) -> None:
    from pyarrow.parquet import ParquetWriter

    from collector.exports.columns import rows_batch, schema_of

    schema = schema_of(*names)
    with ParquetWriter(file.buffer, schema, write_page_checksum=True) as writer:  # type: ignore[attr-defined]
        while group := list(islice(reports, ROWS_PER_GROUP)):
            rows = [(report, _in_kind(cells, names.shown)) for report, cells in group]
            writer.write_batch(rows_batch(schema, rows))


def _in_kind(cells: Cells, shown: Mapping[str, bool]) -> Cells:
    """Turn numbers into texts in columns that do not have only numbers."""
    return {name: value if value is None or shown[name] else str(value) for name, value in cells.items()}


TABLES = {".csv": _write_csv, ".parquet": _write_parquet}
