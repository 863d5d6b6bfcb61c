"""Reading report files: NDJSON as exported or perturbed, or Parquet."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.documents.export_end import is_end_line
from schemas import Report, Study
from summaries import Summary, check_report, check_study, summarize

SHOWN = 3


def summarize_files(study: Study, paths: Iterable[str]) -> Summary:
    """One summary of all reports in the files, each report id counted once.

    Raises InputError that counts and shows the reports that are impossible under the study, or
    that share an id but not their content; nothing is dropped in silence.
    """
    check_study(study)
    if isinstance(paths, str | PathLike):
        raise InputError("paths must be a list of paths, not one path")
    return summarize(study, ReportFiles(study, [checked_path(path) for path in paths]), checked=True)


def load_summary(study: Study, path: str) -> Summary:
    """A summary from a summary file, or from a file of reports. Raises InputError, SummaryError."""
    found = load_evidence(study, path)
    return found if isinstance(found, Summary) else summarize(study, found, checked=True)


def load_evidence(study: Study, path: str | PathLike[str]) -> Summary | ReportFiles:
    """What `fit` takes: a summary file's summary, or a file's reports, read once and as they are asked for.

    Raises InputError, SummaryError; for bad reports only when the last one was asked for.
    """
    path = checked_path(path)
    check_study(study)
    if not path.endswith(".parquet") and '"ldpkit.summary/' in _read_head(path):
        return Summary.from_json(Path(path).read_bytes(), study)
    return ReportFiles(study, [path])


def checked_path(path: object) -> str:
    """The path as text. Raises InputError for what is none."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"a path is wanted, not a {type(path).__name__}")
    return str(path)


def _read_head(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


class ReportFiles:
    """All good reports on one document in files, once each.

    Raises InputError at the end if any was bad, or if there were reports but none on this document. Then
    `left_out` are the reports on other versions: {(version, digest): how many}.
    """

    def __init__(self, study: Study, paths: Iterable[str]) -> None:
        self.left_out: Counter[tuple[int, str]] = Counter()
        self._study, self._paths = study, paths

    def checks(self, study: Study) -> bool:
        """Whether each report that comes out has passed `check_report` for this study."""
        return study.digest == self._study.digest

    def notes(self) -> tuple[str, ...]:
        """What a reader of the result must know of the reports that were left out."""
        if not self.left_out:
            return ()
        count = self.left_out.total()
        said = "1 report answers" if count == 1 else f"{count} reports answer"
        which = ", ".join([f"version {version}" for version, _ in sorted(self.left_out)])
        verb = "was" if count == 1 else "were"
        return (
            f"{said} other versions of the study ({which}) and {verb} left out: fit those with the study "
            "file of their version",
        )

    def __iter__(self) -> Iterator[Report]:
        mechanisms = mechanisms_of(self._study)
        seen: dict[bytes, int] = {}
        problems: list[str] = []
        good = repeated = 0
        others = Others(self._study)
        for where, read in _all_reports(self._paths):
            try:
                report = read()
                if others.hold(report, where):
                    continue
                check_report(self._study, mechanisms, report)
                if _is_repeat(report, seen):
                    repeated += 1
                    continue
            except ReportError as error:
                problems.append(f"{where}: {error}")
                continue
            good += 1
            yield report
        others.refuse_all(good + repeated + len(problems))
        problems += others.foreign
        if problems:
            shown = "; ".join(problems[:SHOWN])
            count = good + repeated + len(problems) + others.versions.total()
            raise InputError(f"{len(problems)} of {count} reports cannot belong to this study: {shown}")
        self.left_out = others.versions
        _tell(repeated, "reports stood more than once and were counted once")
        for line in self.notes():
            print(line, file=sys.stderr)


class Others:
    """Reports on documents other than the study's.

    versions: {(version, digest): how many} of its other versions, which may be left out. foreign: where those
    stand that answer another study, or another document of the same version.
    """

    def __init__(self, study: Study) -> None:
        self.versions: Counter[tuple[int, str]] = Counter()
        self.foreign: list[str] = []
        self._study = study
        self._documents: Counter[str] = Counter()

    def hold(self, report: Report, where: str) -> bool:
        """Whether the report is one of these; it is counted then."""
        if report.digest == self._study.digest:
            return False
        self._documents[f"{report.study} version {report.version} with digest {report.digest}"] += 1
        if report.study == self._study.id and report.version != self._study.version:
            self.versions[report.version, report.digest] += 1
        else:
            self.foreign.append(
                f"{where}: it answers another study document, {report.study} version {report.version} with "
                f"digest {report.digest}"
            )
        return True

    def refuse_all(self, rest: int) -> None:
        """Raises InputError where all reports are of these. rest: how many are not."""
        if rest or not self._documents:
            return
        own = f"{self._study.id} version {self._study.version} with digest {self._study.digest}"
        seen = [f"{count} answer {document}" for document, count in self._documents.most_common()]
        raise InputError(
            f"no report answers {own}: {', '.join(seen[:SHOWN])}. Use the study file with that digest"
        )


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
