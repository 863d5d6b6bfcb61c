"""Writing exported reports to a file: NDJSON, or CSV or Parquet where the name ends so."""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from ldp_client.files.writing import replacing
from schemas import Report

ROWS_PER_GROUP = 10_000

# Those of questions, and of public fields.
Names = tuple[Sequence[str], Sequence[str]]


def write_reports(reports: Iterable[Report], path: Path) -> int:
    """Write reports to `path`, whole or not at all; returns how many.

    Raises InputError when the file cannot be written. Parquet needs pyarrow.
    """
    if path.suffix.lower() in _TABLES:
        return _write_table(reports, path, _TABLES[path.suffix.lower()])
    with replacing(str(path)) as file:
        return sum(1 for _ in _written(reports, file))


def _write_table(
    reports: Iterable[Report], path: Path, write: Callable[[Names, Iterator[Report], IO[str]], None]
) -> int:
    with replacing(str(path)) as file, TemporaryFile("w+", encoding="utf-8", dir=path.parent) as spool:
        # The questions are known only when the last report has come: a study may have versions.
        questions: set[str] = set()
        public: set[str] = set()
        count = 0
        for report in _written(reports, spool):
            questions.update(report.payloads)
            public.update(report.public)
            count += 1
        spool.seek(0)
        write((sorted(questions), sorted(public)), map(Report.from_json, spool), file)
        return count


def _write_csv(names: Names, reports: Iterator[Report], file: IO[str]) -> None:
    from collector.exports.formats import csv_header

    writer = csv.writer(file, lineterminator="\n")
    questions, public = names
    writer.writerow(csv_header(questions, public))
    for report in reports:
        values = [report.public.get(field, "") for field in public]
        cells = [b64encode(report.payloads.get(question, b"")).decode() for question in questions]
        writer.writerow([report.id, report.study, report.version, report.digest, *values, *cells])


def _write_parquet(names: Names, reports: Iterator[Report], file: IO[str]) -> None:
    from pyarrow.parquet import ParquetWriter

    from collector.exports.columns import rows_batch, schema_of

    schema = schema_of(*names)
    with ParquetWriter(file.buffer, schema) as writer:  # type: ignore[attr-defined]
        while group := list(islice(reports, ROWS_PER_GROUP)):
            writer.write_batch(rows_batch(schema, group))


_TABLES = {".csv": _write_csv, ".parquet": _write_parquet}


def _written(reports: Iterable[Report], file: IO[str]) -> Iterator[Report]:
    for report in reports:
        file.write(report.to_json() + "\n")
        yield report
