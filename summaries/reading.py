"""Reading reports, wherever they are: files of NDJSON and Parquet, tables in memory."""

from __future__ import annotations

import re
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, ReportError, SummaryError
from ldp_client.documents.report import MAX_BYTES
from schemas import Report, Study
from schemas.disk import STREAM, refuse_workbook, standard_input
from summaries.cells import MOST_CELLS, Cell, keeps_cells
from summaries.findings import Findings, left_out_notes
from summaries.reducing import Seen, check_report, check_study, reduce_reports, study_of
from summaries.summary import CELLS, QuestionSummary, Summary
from summaries.tables import ArrowTable, Placed, in_documents, in_table, is_table, report_of_row

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
    b"repo": "a table in CSV, for people: export NDJSON or Parquet",
    PARQUET: "a Parquet file: give it a name that ends in .parquet",
}


def summarize(
    study: Study | str | PathLike[str], reports: Reports, *, told: Told = lambda _count: None
) -> Summary:
    """Reduce reports to a summary, in one pass and bounded memory; their ids are kept in a temporary file.

    Args:
        study: the document that the reports answer, or the path of its file.
        reports: any series of them, read once, or their place, as `fit` takes it. Repeated reports count
            once, which is noted on standard error.
        told: is called now and then with how many reports of files were read.

    Returns:
        The summary, equal whatever the order of the reports.

    Raises:
        InputError: the study is no Study, the reports are no reports, or there are none. It counts, and
            shows, the reports that are impossible under the study, or that share an id but not their content.
        SummaryError: the file has a summary of another study.
    """
    study = study_of(study)
    evidence = evidence_of(study, reports, told)
    if isinstance(evidence, Summary):
        return evidence
    summary = reduce_reports(study, evidence)
    if not any(part.n for part in summary.questions.values()):
        raise InputError(
            "there are no reports in what was given; a series is used up once it was read",
            code="reports.none",
        )
    return summary


def cell_summaries(study: Study, evidence: Reports) -> Mapping[Cell, Mapping[str, QuestionSummary]]:
    """Give a summary of each question for each cell that has reports.

    Args:
        study: the document that was answered.
        evidence: reports, each of which counts once, as `fit` takes them, or a Summary of them that is kept
            by cell.

    Returns:
        {values of the public fields, in the study's order: {question id: QuestionSummary}}.

    Raises:
        InputError: the study has no public fields.
        SummaryError: the summary is of another document, or is not kept by cell: take the reports.
    """
    check_study(study)
    if not study.public:
        raise InputError(
            f"study {study.id} has no public fields: its reports have no columns but payloads",
            code="summary.no_public_fields",
        )
    summary = evidence_of(study, evidence)
    if not isinstance(summary, Summary):
        summary = reduce_reports(study, summary, by_cell=True)
    if summary.digest != study.digest:
        raise SummaryError("digest", "it is of another study document", code="summary.other_study")
    if summary.cells is None:
        problem = "was not kept by cell"
        if not keeps_cells(study):
            problem = (
                f"has no cells, as {study.cells:,} are too many, or too large: {MOST_CELLS:,} is the most"
            )
        raise SummaryError(
            CELLS, f"the summary {problem}: take the reports themselves", code="summary.cells_invalid"
        )
    return summary.cells


def evidence_of(study: Study, given: object, told: Told = lambda _count: None) -> Summary | ReadReports:
    """Find the reports, or the summary, in a user's input; files are read lazily, and once.

    given: a Summary; a path, or paths, of files; a pandas, Polars or Arrow table of an export; a series of
    Report, of their documents or of their lines, such as an open file. Reports on other versions are left out
    and noted.
    told: is called now and then with how many reports of files were read.

    Raises InputError for anything else, SummaryError; for bad reports only when the last one was requested.
    """
    if isinstance(given, list | tuple) and len(given) == 1 and _is_path(given[0]):
        (given,) = given
    if isinstance(given, Summary):
        return given
    if isinstance(given, ReadReports):
        if given.digest != study.digest:
            raise InputError("these reports were read for another study", code="reports.of_other_study")
        return given
    if isinstance(given, str | PathLike):
        path = checked_path(given)
        if _is_summary(path):
            return Summary.from_json(Path(path).read_bytes().removeprefix(BOM_UTF8), study)
        return ReadReports(study, partial(_all_reports, [path]), told)
    if is_table(given):
        return ReadReports(study, partial(in_table, given))
    if isinstance(given, Report | Mapping | bytes) or not isinstance(given, Iterable):
        raise InputError(
            f"reports must be a path, a table, a Summary or a series of Report, not a {type(given).__name__}"
            + (": give a list of them" if isinstance(given, Report | Mapping) else ""),
            code="reports.unknown_kind",
        )
    # The first entry tells the kind of a series.
    series = iter(given)
    head = list(islice(series, 1))
    whole = chain(head, series)
    if head and _is_path(head[0]):
        names = [checked_path(path) for path in whole]
        for name in names:
            if _is_summary(name):
                raise InputError(
                    f"{name} is a summary, not reports: fit it alone; in Python summaries of which no two "
                    "have a report in common add up, one.merge(other)",
                    code="reports.is_summary",
                )
        return ReadReports(study, partial(_all_reports, names), told)
    return ReadReports(study, partial(in_documents, whole))


def _is_path(entry: object) -> bool:
    """Tell a path from a line of reports."""
    is_line = isinstance(entry, str) and entry.lstrip("\ufeff \t\r\n").startswith("{")
    return isinstance(entry, str | PathLike) and not is_line


def _is_summary(path: str) -> bool:
    if _is_parquet(path):
        return False
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            # Only the format counts: a label may contain such text.
            return bool(re.search(r'"format":\s*"ldpkit\.summary/', file.read(4096)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None


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
    if "://" in str(path) or Path(path).is_dir():
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


class ReadReports:
    """All good reports on one document among the reports that `read` finds, each once.

    Raises InputError at the end if any was bad, or if there were reports but none on this document. Then
    `left_out` are the reports on other versions: {(version, digest): how many}. Reports on `read_elsewhere`,
    digests of versions that the same analysis reads too, are not noted. told: is called now and then with how
    many were read.
    """

    def __init__(
        self, study: Study, read: Callable[[], Iterable[Placed]], told: Told = lambda _count: None
    ) -> None:
        self.left_out: Counter[tuple[int, str]] = Counter()
        self.read_elsewhere: frozenset[str] = frozenset()
        self.digest = study.digest
        self._study, self._read, self._told = study, read, told

    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the result on reports that were left out."""
        return left_out_notes(self._noted())

    def _noted(self) -> dict[tuple[int, str], int]:
        return {other: n for other, n in self.left_out.items() if other[1] not in self.read_elsewhere}

    def __iter__(self) -> Iterator[Report]:
        mechanisms = mechanisms_of(self._study)
        seen, findings = Seen(), Findings(self._study)
        for count, (where, parse) in enumerate(self._read(), 1):
            if count % TOLD_EVERY == 0:
                self._told(count)
            try:
                report = parse()
                if findings.is_other(report, where):
                    continue
                check_report(self._study, mechanisms, report)
                if seen.holds(report):
                    findings.repeated += 1
                    continue
            except ReportError as error:
                findings.refuse(f"{where}: {error}")
                continue
            findings.good += 1
            yield report
        findings.refuse_bad()
        self.left_out = findings.versions
        findings.print_notes(self._noted())


def _all_reports(paths: Iterable[str]) -> Iterator[Placed]:
    """Yield each report's place and a function that parses it."""
    for path in paths:
        name = Path(path).name
        try:
            if _is_parquet(path):
                # Arrow loads where a file needs it.
                from summaries.engines.dataset import ReportFile

                rows = (row for batch in ReportFile(0, path).batches() for row in batch.to_pylist())
                for number, row in enumerate(rows, 1):
                    yield f"{name}, row {number}", partial(report_of_row, row)
                continue
            with open(path, "rb") as file:
                begin = file.read(4)
                for magic, what in NO_TEXT.items():
                    if begin.startswith(magic):
                        raise InputError(f"{path} is {what}", code="reports.not_ndjson")
                file.seek(len(BOM_UTF8) if begin.startswith(BOM_UTF8) else 0)
                yield from in_documents(_lines(file), f"{name}, line")
        except OSError as error:
            raise InputError(
                f"cannot read {path}: {error.strerror or error}", code="files.not_readable"
            ) from None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; of a line too long for a report only its beginning, which is refused too."""
    while line := file.readline(MAX_BYTES + 2):
        rest = line
        while len(rest) == MAX_BYTES + 2 and not rest.endswith(b"\n"):
            rest = file.readline(MAX_BYTES + 2)
        yield line
