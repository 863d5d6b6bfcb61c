"""Writing exported reports to a file: NDJSON, or Parquet where the name ends in .parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from ldp_client.files import replacing
from schemas import Report

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_GROUP = 10_000


def write_reports(reports: Iterable[Report], path: Path) -> int:
    """Write reports to `path`, whole or not at all; returns how many.

    Raises InputError when the file cannot be written. Parquet needs pyarrow.
    """
    return write_parquet(reports, path) if path.suffix == ".parquet" else write_ndjson(reports, path)


def write_ndjson(reports: Iterable[Report], path: Path) -> int:
    """One report document a line."""
    with replacing(str(path)) as file:
        return sum(1 for _ in _written(reports, file))


def write_parquet(reports: Iterable[Report], path: Path) -> int:
    """Columns report_id, study, version, digest, and binary payloads.<question id> for each question.

    A question that a report's version of the study does not have is null.
    """
    from pyarrow import parquet

    with replacing(str(path)) as file, TemporaryFile("w+", encoding="utf-8", dir=path.parent) as spool:
        # The questions are known only when the last report has come: a study may have versions.
        questions: dict[str, None] = {}
        for report in _written(reports, spool):
            questions.update(dict.fromkeys(report.payloads))
        spool.seek(0)
        schema = _schema(questions)
        with parquet.ParquetWriter(file.buffer, schema) as writer:
            return sum(_write_group(writer, group) for group in _groups(spool))


def _written(reports: Iterable[Report], file: IO[str]) -> Iterator[Report]:
    for report in reports:
        file.write(report.to_json() + "\n")
        yield report


def _groups(lines: Iterable[str]) -> Iterator[list[Report]]:
    remaining = iter(lines)
    while group := list(islice(remaining, ROWS_PER_GROUP)):
        yield [Report.from_json(line) for line in group]


def _write_group(writer: Any, group: list[Report]) -> int:
    import pyarrow as pa

    writer.write_table(pa.Table.from_pylist([_row(report) for report in group], schema=writer.schema))
    return len(group)


def _row(report: Report) -> dict[str, object]:
    row: dict[str, object] = {_column(question): report.payloads[question] for question in report.payloads}
    row.update(report_id=report.id, study=report.study, version=report.version, digest=report.digest)
    return row


def _schema(questions: Iterable[str]) -> pa.Schema:
    import pyarrow as pa

    text = pa.string()
    columns = {"report_id": text, "study": text, "version": pa.int64(), "digest": text}
    columns.update({_column(question): pa.binary() for question in questions})
    return pa.schema(columns)


def _column(question_id: str) -> str:
    return f"payloads.{question_id}"
