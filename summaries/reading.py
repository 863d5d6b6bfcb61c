"""Reading reports, wherever they are: files of NDJSON, CSV and Parquet, tables in memory."""

from __future__ import annotations

import re
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, cast

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.documents.report import MAX_BYTES
from ldp_client.files.disk import STREAM, refuse_workbook, standard_input
from schemas import Report, Study
from summaries import Summary, check_report, check_study
from summaries.csv_rows import csv_rows, is_csv
from summaries.engines.addresses import is_in_store
from summaries.reducing import CheckedReports, Seen, good_reports, reduce_reports, study_of
from summaries.refusing import Others, Refused, left_out_notes, refuse_bad
from summaries.tables import (
    ArrowTable,
    Placed,
    in_documents,
    in_table,
    is_table,
    report_of_row,
)

# The inputs in which `evidence_of` finds reports: files, tables, documents, lines.
Reports = (
    Summary | Iterable[Report] | Iterable[Mapping[str, Any]] | Iterable[str | bytes | PathLike[str]] | str
    | PathLike[str] | ArrowTable
)  # fmt: skip
TOLD_EVERY = 4096
Told = Callable[[int], None]
PARQUET = b"PAR1"
NO_TEXT = {
    BOM_UTF16_LE: "UTF-16 text: save it as UTF-8",
    BOM_UTF16_BE: "UTF-16 text: save it as UTF-8",
    b"\x1f\x8b": "compressed with gzip: decompress it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: decompress it first",
    b"PK\x03\x04": "a ZIP archive: unpack it first",
    PARQUET: "a Parquet file: give it a name that ends in .parquet",
}


def _to_nobody(_count: int) -> None:
    """Ignore progress."""


def summarize(study: Study | str | PathLike[str], reports: Reports) -> Summary:
    """Reduce reports to a summary, in one pass and bounded memory; their ids are kept in a temporary file.

    Args:
        study: the document that the reports answer, or the path of its file.
        reports: any series of them, read once, or their place, as `fit` takes it. Repeated reports count
            once, which is noted on standard error.

    Returns:
        The summary, equal whatever the order of the reports.

    Raises:
        InputError: the study is no Study, the reports are no reports, or there are none.
        ReportError: a report answers another study document, has other questions, could not have come from a
            device, or has the id of another report.
        SummaryError: the file has a summary of another study.
    """
    study = study_of(study)
    found = evidence_of(study, reports)
    if isinstance(found, Summary):
        return found
    summary = reduce_reports(study, good_reports(study, found))
    if not _count(summary):
        raise InputError(
            "there are no reports (a series is used up once read): Summary.empty(study) is a summary of none",
            code="reports.none_in_series",
        )
    return summary


def _count(summary: Summary) -> int:
    """Return how many answers it has."""
    return sum(part.n for part in summary.questions.values())


def summarize_files(study: Study, paths: Iterable[str], told: Told = _to_nobody) -> Summary:
    """Return one summary of all reports in the files, each report id counted once.

    told: is called now and then with how many were read.

    Raises InputError that counts and shows the reports that are impossible under the study, or that share an
    id but not their content, and if there are none; nothing is dropped silently.
    """
    check_study(study)
    if isinstance(paths, str | PathLike):
        raise InputError("paths must be a list of paths, not one path", code="reports.paths_not_a_list")
    names = _of_reports(paths)
    summary = reduce_reports(study, good_reports(study, ReportFiles(study, names, told)))
    if not _count(summary):
        raise InputError(f"there are no reports in {', '.join(names)}", code="reports.none_in_files")
    return summary


def load_summary(study: Study, path: str) -> Summary:
    """Load a summary from a summary file, or from a file of reports. Raises InputError, SummaryError."""
    found = load_evidence(study, path)
    return found if isinstance(found, Summary) else summarize(study, found)


def load_evidence(
    study: Study, path: str | PathLike[str] | Sequence[str], told: Told = _to_nobody
) -> Summary | ReportFiles:
    """Open what `fit` takes: the summary in a file, or reports in a file or several, read lazily and once.

    told: is called now and then with how many were read.

    Raises InputError, SummaryError; for bad reports only when the last report was requested.
    """
    check_study(study)
    if not isinstance(path, str | PathLike):
        if len(path) > 1:
            return ReportFiles(study, _of_reports(path), told)
        (path,) = path
    path = checked_path(path)
    if _is_summary(path):
        return Summary.from_json(Path(path).read_bytes().removeprefix(BOM_UTF8), study)
    return ReportFiles(study, [path], told)


def evidence_of(study: Study, given: object) -> Summary | Iterable[Report]:
    """Find the reports, or the summary, in a user's input.

    given: a Summary; a path, or paths, of files; a pandas, Polars or Arrow table of an export; a series of
    Report, of their documents or of their lines, such as an open file. All except a series of Report may hold
    reports on other versions, which are left out and noted, as for files.

    Raises InputError for anything else, SummaryError.
    """
    if isinstance(given, Summary | CheckedReports):
        return given
    if isinstance(given, str | PathLike):
        return load_evidence(study, given)
    if is_table(given):
        return ReadReports(study, partial(in_table, given))
    if isinstance(given, Report | Mapping | bytes) or not isinstance(given, Iterable):
        raise InputError(
            f"reports must be a path, a table, a Summary or a series of Report, not a {type(given).__name__}"
            + (": give a list of them" if isinstance(given, Report | Mapping) else ""),
            code="reports.unknown_kind",
        )
    return _in_series(study, iter(given))


def _in_series(study: Study, series: Iterator[object]) -> Iterable[Report]:
    """Return the reports of a series, whose kind its first entry tells."""
    first = next(series, None)
    if first is None:
        return ()
    if is_table(first):
        raise InputError(
            "join several tables into one with all their rows, such as pandas.concat(tables)",
            code="reports.several_tables",
        )
    whole = chain([first], series)
    is_line = isinstance(first, str) and first.lstrip("\ufeff \t\r\n").startswith("{")
    if isinstance(first, PathLike) or (isinstance(first, str) and not is_line):
        return ReportFiles(study, _of_reports(whole))
    if isinstance(first, str | bytes | Mapping):
        return ReadReports(study, partial(in_documents, whole))
    return cast(Iterable[Report], whole)


def _of_reports(paths: Iterable[object]) -> list[str]:
    """Return the paths of files of reports. Raises InputError for a summary among them."""
    names = [checked_path(path) for path in paths]
    for name in names:
        if _is_summary(name):
            raise InputError(
                f"{name} is a summary, not reports: fit it alone; in Python summaries of which no two have a "
                "report in common add up, one.merge(other)",
                code="reports.is_summary",
            )
    return names


def _is_summary(path: str) -> bool:
    # Only the format counts: a label may contain such text.
    return not _is_parquet(path) and bool(re.search(r'"format":\s*"ldpkit\.summary/', _read_head(path)))


def checked_path(path: object) -> str:
    """Return a file's path as text, - as that of a copy of standard input. Raises InputError for others."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"a path is wanted, not a {type(path).__name__}", code="reports.not_a_path")
    if "\n" in str(path) or str(path).startswith("{"):
        raise InputError(
            "a file's path is wanted, not its text: give that line by line, text.splitlines()",
            code="reports.text_not_path",
        )
    refuse_workbook(path)
    if is_in_store(str(path)) or Path(path).is_dir():
        raise InputError(
            f"{path} is no file: name a file of reports, or first reduce a dataset by "
            f"`ldpkit summarize STUDY.json {path} --out summary.json`",
            code="reports.not_a_file",
        )
    if Path(path).is_fifo():
        raise InputError(
            f"{path} is a stream, and reports are looked at twice: pipe them in and name - in its place",
            code="reports.stream",
        )
    return _copied_input() if str(path) == STREAM else str(path)


# The copy of standard input, deleted when the process ends: the beginning of a file is read first.
_copies: list[tuple[object, TemporaryDirectory[str], str]] = []


def _copied_input() -> str:
    for stream, _, path in _copies:
        if stream is sys.stdin:
            return path
    source, folder = standard_input(), TemporaryDirectory(prefix="ldpkit-")
    begin = source.read(len(PARQUET))
    path = str(Path(folder.name, "standard input.parquet" if begin == PARQUET else "standard input"))
    with open(path, "wb") as copy:
        copy.write(begin)
        copyfileobj(source, copy)
    _copies.append((sys.stdin, folder, path))
    return path


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


def _read_head(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None


class ReadReports(CheckedReports):
    """All good reports on one document among the reports that `read` finds, each once.

    Raises InputError at the end if any was bad, or if there were reports but none on this document. Then
    `left_out` are the reports on other versions: {(version, digest): how many}. Reports on `read_elsewhere`,
    digests of versions that the same analysis reads too, are not noted. told: is called now and then with how
    many were read.
    """

    def __init__(self, study: Study, read: Callable[[], Iterable[Placed]], told: Told = _to_nobody) -> None:
        self.left_out: Counter[tuple[int, str]] = Counter()
        self.read_elsewhere: frozenset[str] = frozenset()
        self.digest = study.digest
        self._study, self._read, self._told = study, read, told

    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the result on reports that were left out."""
        return left_out_notes({o: n for o, n in self.left_out.items() if o[1] not in self.read_elsewhere})

    def __iter__(self) -> Iterator[Report]:
        mechanisms = mechanisms_of(self._study)
        seen = Seen()
        bad = Refused()
        good = 0
        others = Others(self._study)
        for count, (where, read) in enumerate(self._read(), 1):
            if count % TOLD_EVERY == 0:
                self._told(count)
            try:
                report = read()
                if others.hold(report, where):
                    continue
                check_report(self._study, mechanisms, report)
                if seen.holds(report):
                    continue
            except ReportError as error:
                bad.add(f"{where}: {error}")
                continue
            good += 1
            yield report
        refuse_bad(good, seen.repeated, bad, others)
        self.left_out = others.versions
        seen.tell()
        for line in self.notes():
            print(line, file=sys.stderr)


class ReportFiles(ReadReports):
    """All good reports on one document in files."""

    def __init__(self, study: Study, paths: Iterable[str], told: Told = _to_nobody) -> None:
        super().__init__(study, partial(_all_reports, paths), told)


def _all_reports(paths: Iterable[str]) -> Iterator[Placed]:
    """Yield each report's place and a function that parses it."""
    for path in paths:
        try:
            yield from _rows_of(path)(path)
        except OSError as error:
            raise InputError(
                f"cannot read {path}: {error.strerror or error}", code="files.not_readable"
            ) from None


def _rows_of(path: str) -> Callable[[str], Iterator[Placed]]:
    if _is_parquet(path):
        return _parquet_rows
    return csv_rows if is_csv(path) else _ndjson_lines


def _ndjson_lines(path: str) -> Iterator[Placed]:
    with open(path, "rb") as file:
        begin = file.read(4)
        for magic, what in NO_TEXT.items():
            if begin.startswith(magic):
                raise InputError(f"{path} is {what}", code="reports.not_ndjson")
        file.seek(len(BOM_UTF8) if begin.startswith(BOM_UTF8) else 0)
        yield from in_documents(_lines(file), f"{Path(path).name}, line")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; of a line too long for a report only its beginning, which is refused too."""
    while line := file.readline(MAX_BYTES + 2):
        rest = line
        while len(rest) == MAX_BYTES + 2 and not rest.endswith(b"\n"):
            rest = file.readline(MAX_BYTES + 2)
        yield line


def _parquet_rows(path: str) -> Iterator[Placed]:
    # Arrow loads where a file needs it.
    from summaries.engines.dataset import ReportFile
    from summaries.engines.work import batches_of

    number = 0
    for batch in batches_of(ReportFile(0, path)):
        for row in batch.to_pylist():
            number += 1
            yield f"{Path(path).name}, row {number}", partial(report_of_row, row)
