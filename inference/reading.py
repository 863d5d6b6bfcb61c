"""Reading report files: NDJSON as exported or perturbed, or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ldp_client import mechanism_for
from schemas import Report, Study
from schemas.errors import InputError, ReportError
from schemas.export_end import is_end_line
from summaries import Summary, check_report, summarize

SHOWN = 3


def summarize_files(study: Study, paths: Iterable[str]) -> Summary:
    """One summary of all reports in the files, each report id counted once.

    Raises InputError that counts and shows the reports that are impossible under the study, or
    that share an id but not their content; nothing is dropped in silence.
    """
    return summarize(study, _checked(study, paths))


def load_summary(study: Study, path: str) -> Summary:
    """A summary from a summary file, or from a file of reports. Raises InputError, SummaryError."""
    found = load_evidence(study, path)
    return found if isinstance(found, Summary) else summarize(study, found)


def load_evidence(study: Study, path: str) -> Summary | Iterator[Report]:
    """What `fit` takes: a summary file's summary, or a file's reports, read once and as they are asked for.

    Raises InputError, SummaryError; for bad reports only when the last one was asked for.
    """
    if not path.endswith(".parquet") and '"ldpkit.summary/' in _read_head(path):
        return Summary.from_json(Path(path).read_bytes(), study)
    return _checked(study, [path])


def _read_head(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _checked(study: Study, paths: Iterable[str]) -> Iterator[Report]:
    """All good reports on this document, once each; raises at the end if any was bad."""
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    seen: dict[bytes, int] = {}
    problems: list[str] = []
    count = repeated = other_versions = 0
    for where, read in _all_reports(paths):
        count += 1
        try:
            report = read()
            if report.study == study.id and report.version != study.version:
                other_versions += 1
                continue
            check_report(study, mechanisms, report)
            if _is_repeat(report, seen):
                repeated += 1
                continue
        except ReportError as error:
            problems.append(f"{where}: {error}")
            continue
        yield report
    if problems:
        shown = "; ".join(problems[:SHOWN])
        raise InputError(f"{len(problems)} of {count} reports cannot belong to this study: {shown}")
    _tell(repeated, "reports stood more than once and were counted once")
    _tell(other_versions, "reports answer other versions of the study and were left out")


def _tell(count: int, what: str) -> None:
    if count:
        print(f"{count} {what}", file=sys.stderr)


def _is_repeat(report: Report, seen: dict[bytes, int]) -> bool:
    """Whether the same report was seen before. Raises ReportError if its id came with other content."""
    key = bytes.fromhex(report.id)
    content = hash(tuple(sorted(report.payloads.items())))
    if key not in seen:
        seen[key] = content
        return False
    if seen[key] != content:
        raise ReportError("id", f"{report.id} stands twice with different content")
    return True


def _all_reports(paths: Iterable[str]) -> Iterator[tuple[str, Callable[[], Report]]]:
    """Where each report stands, and how to parse it."""
    for path in paths:
        try:
            yield from _parquet_rows(path) if path.endswith(".parquet") else _ndjson_lines(path)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def _ndjson_lines(path: str) -> Iterator[tuple[str, Callable[[], Report]]]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not is_end_line(line):
                yield f"{Path(path).name}, line {number}", partial(Report.from_json, line)


def _parquet_rows(path: str) -> Iterator[tuple[str, Callable[[], Report]]]:
    number = 0
    for rows in _parquet_batches(path):
        for row in rows:
            number += 1
            yield f"{Path(path).name}, row {number}", partial(_report_of_row, row)


def _parquet_batches(path: str) -> Iterator[list[dict[str, Any]]]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        for batch in ParquetFile(path).iter_batches():
            yield batch.to_pylist()
    except (ArrowException, OSError) as error:
        # Of what a file says of itself, an error of the system's has a number; the text runs over lines.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(f"{path} is damaged, or is not a Parquet file: export it again") from None


def _report_of_row(row: dict[str, Any]) -> Report:
    """A report from the columns that `ldpkit export` writes; `payloads` has a field for each question."""
    try:
        payloads = {name: value for name, value in row["payloads"].items() if value is not None}
        report = Report(row["report_id"], row["study"], row["version"], row["digest"], payloads)
    except (KeyError, AttributeError):
        raise ReportError("", "the row lacks a column of an export") from None
    if not all(isinstance(payload, bytes) for payload in payloads.values()):
        raise ReportError("payloads", "must be binary columns")
    # The rules of a report document hold for a row too.
    return Report.from_document(report.to_document())
