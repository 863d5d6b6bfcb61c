"""Writing fetched reports to a file: NDJSON, or CSV or Parquet where its name ends so."""

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
    """Of columns: those of questions, of public fields, and others for people, whether they have numbers."""

    questions: Sequence[str]
    public: Sequence[str]
    shown: Mapping[str, bool]


def write_reports(reports: Iterable[Report], path: Path) -> int:
    """Write reports to `path`, whole or not at all; returns how many.

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
        # As in the export that it came from: whoever reads the file knows whether it is whole.
        file.write(end_line(count))
        return count


def write_decoded(reports: Iterable[DatedReport], path: Path, decoding: Decoding) -> int:
    """Write the same as a table with columns for people: the day, and what is decoded; to a stream as CSV."""
    return _write_table(reports, path, _decoded(decoding), TABLES.get(path.suffix.lower(), _write_csv))


class Form(NamedTuple, Generic[Written]):
    """What a table of reports has beside the columns that are read back.

    line, read: a report's line while the table waits for its last one, and back. meet: is told of each report
    before columns are asked for. columns: others for people, and whether each has numbers. cells: a report's.
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
        # The questions are known only when the last report has come: a study may have versions.
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
    """Cells as the columns have them: numbers as texts where not all of a column's are numbers."""
    return {name: value if value is None or shown[name] else str(value) for name, value in cells.items()}


TABLES = {".csv": _write_csv, ".parquet": _write_parquet}
