"""Fetching an export over HTTP, knowing that nothing of it is missing, into a file; or the running summary.

The file is NDJSON, or CSV or Parquet where its name ends so.
"""

from __future__ import annotations

import csv
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from collector.remote.client import (
    Allowance,
    PassingError,
    Patience,
    ask,
    require_address,
    require_private,
    stream,
)
from ldp_client.documents.errors import DocumentError, StudyError, TransferError
from ldp_client.documents.export_end import end_line, is_end_line
from ldp_client.documents.report import MAX_BYTES
from ldp_client.documents.study import MAX_BYTES as STUDY_BYTES
from ldp_client.files.disk import STREAM, replacing
from ldp_client.files.tables import no_formula
from schemas import Report, Study

if TYPE_CHECKING:
    from summaries.decoding import Decoding

DEADLINE_SECONDS = 300.0
# A summary of a million choices has some ten.
MOST_SUMMARY_BYTES = 256 << 20
WHO = "the collector"


def fetch_reports(base_url: str, study_id: str, token: str) -> Iterator[Report]:
    """Every report of a study in the order of the ids, resumed where a connection breaks.

    Raises InputError for a URL that a key must not go to, TransferError when the collector refuses or
    cannot be reached in 5 attempts that bring nothing new, or sends too slowly.
    """
    require_private(base_url)
    require_address(base_url)
    after = ""
    patience, allowance = Patience(), Allowance()
    while True:
        try:
            for report in _fetch_once(_export_url(base_url, study_id, after), token, allowance):
                if report.id <= after:
                    raise TransferError(f"report {report.id} came again: is the query lost on the way?")
                patience.renew()
                after = report.id
                yield report
            return
        except PassingError as error:
            patience.wait(error)


def fetch_summary(base_url: str, study_id: str, token: str) -> str:
    """The summary of the current version's reports, as JSON text.

    Raises InputError for a URL that a key must not go to, TransferError when the collector refuses or is
    away, and for an answer that is no summary: a page in between, or a proxy's.
    """
    require_private(base_url)
    require_address(base_url)
    url = f"{_study_url(base_url, study_id)}/summary"
    try:
        text: str = ask(url, token, WHO, MOST_SUMMARY_BYTES, DEADLINE_SECONDS).decode()
        if not json.loads(text)["format"].startswith("ldpkit.summary/"):
            raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise TransferError(f"what came from {base_url} is no summary: is that a collector?") from None
    return text


def fetch_study(base_url: str, study_id: str, version: int, digest: str) -> Study:
    """The published document that reports answer.

    Raises InputError, TransferError as `fetch_summary`, and where what comes has another digest.
    """
    require_private(base_url)
    require_address(base_url)
    url = f"{_study_url(base_url, study_id)}?version={version}"
    try:
        study = Study.from_json(ask(url, "", WHO, STUDY_BYTES, DEADLINE_SECONDS))
    except StudyError as error:
        raise TransferError(f"what came from {url} is no study: {error}") from None
    if study.digest != digest:
        raise TransferError(f"what came from {url} is not the study with digest {digest}")
    return study


def _export_url(base_url: str, study_id: str, after: str) -> str:
    url = f"{_study_url(base_url, study_id)}/export"
    return f"{url}?after={after}" if after else url


def _study_url(base_url: str, study_id: str) -> str:
    return f"{base_url.rstrip('/')}/v1/studies/{quote(study_id, safe='')}"


def _fetch_once(url: str, token: str, allowance: Allowance) -> Iterator[Report]:
    with stream(url, token, WHO, allowance) as pieces:
        yield from _whole_export(_lines(pieces))


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Lines with their ends; the last one may have none. Raises TransferError above any report's length."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        size += len(first)
        if max(size, *map(len, others), 0) > MAX_BYTES:
            raise TransferError(f"{WHO} sent a line of more than {MAX_BYTES} bytes: no report is longer")
        held.append(first)
        if others:
            yield b"".join(held) + b"\n"
            yield from (line + b"\n" for line in others[:-1])
            held, size = [others[-1]], len(others[-1])
    if size:
        yield b"".join(held)


def _whole_export(lines: Iterator[bytes]) -> Iterator[Report]:
    """The reports before the end line. Raises PassingError when there is no end line or it disagrees."""
    count = 0
    for line in lines:
        if not line.endswith(b"\n"):
            break
        if line == end_line(count).encode():
            return
        if is_end_line(line):
            raise TransferError(f"the export ends after {count} reports, but its last line says otherwise")
        yield _parse_report(line)
        count += 1
    raise PassingError(f"the export was cut off after {count} reports")


def _parse_report(line: bytes) -> Report:
    try:
        return Report.from_json(line)
    except DocumentError as error:
        raise TransferError(f"the collector sent what is not a report: {error}") from None


ROWS_PER_GROUP = 10_000


class Names(NamedTuple):
    """Of columns: those of questions and of public fields. decoding: names and fills the others."""

    questions: Sequence[str]
    public: Sequence[str]
    decoding: Decoding | None


def write_reports(reports: Iterable[Report], path: Path, decoding: Decoding | None = None) -> int:
    """Write reports to `path`, whole or not at all; returns how many.

    decoding: gives a table its decoded columns. Raises InputError when the file cannot be written. Parquet
    needs pyarrow.
    """
    write = TABLES.get(path.suffix.lower(), None if decoding is None else _write_csv)
    if write is not None:
        return _write_table(reports, path, write, decoding)
    with replacing(str(path), private=True) as file:
        count = sum(1 for _ in _written(reports, file))
        # As in the export that it came from: whoever reads the file knows whether it is whole.
        file.write(end_line(count))
        return count


def _write_table(
    reports: Iterable[Report],
    path: Path,
    write: Callable[[Names, Iterator[Report], IO[str]], None],
    decoding: Decoding | None,
) -> int:
    with (
        replacing(str(path), private=True) as file,
        TemporaryFile("w+", encoding="utf-8", dir=None if str(path) == STREAM else path.parent) as spool,
    ):
        # The questions are known only when the last report has come: a study may have versions.
        questions: set[str] = set()
        public: set[str] = set()
        count = 0
        for report in _written(reports, spool):
            questions.update(report.payloads)
            public.update(report.public)
            if decoding is not None:
                decoding.meet(report)
            count += 1
        spool.seek(0)
        write(Names(sorted(questions), sorted(public), decoding), map(Report.from_json, spool), file)
        return count


def _write_csv(names: Names, reports: Iterator[Report], file: IO[str]) -> None:
    from collector.exports.formats import csv_header

    writer = csv.writer(file, lineterminator="\n")
    questions, public, decoding = names
    decoded = [] if decoding is None else list(decoding.columns)
    writer.writerow(csv_header(questions, public) + decoded)
    for report in reports:
        values = [report.public.get(field, "") for field in public]
        cells = [b64encode(report.payloads.get(question, b"")).decode() for question in questions]
        found = {} if decoding is None else decoding.cells(report)
        said = [_cell(found.get(name)) for name in decoded]
        writer.writerow([report.id, report.study, report.version, report.digest, *values, *cells, *said])


def _cell(value: str | float | None) -> str | float:
    if value is None:
        return ""
    return no_formula(value) if isinstance(value, str) else value


def _write_parquet(names: Names, reports: Iterator[Report], file: IO[str]) -> None:
    from pyarrow.parquet import ParquetWriter

    from collector.exports.columns import rows_batch, schema_of

    decoding = names.decoding
    schema = schema_of(names.questions, names.public, {} if decoding is None else decoding.columns)
    cells = _nothing if decoding is None else decoding.cells
    with ParquetWriter(file.buffer, schema, write_page_checksum=True) as writer:  # type: ignore[attr-defined]
        while group := list(islice(reports, ROWS_PER_GROUP)):
            writer.write_batch(rows_batch(schema, group, cells))


def _nothing(_report: Report) -> dict[str, Any]:
    return {}


TABLES = {".csv": _write_csv, ".parquet": _write_parquet}


def _written(reports: Iterable[Report], file: IO[str]) -> Iterator[Report]:
    for report in reports:
        file.write(report.to_json() + "\n")
        yield report
