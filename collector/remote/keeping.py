"""What an earlier export has and the collector has no more: the file may be all that is left of it.

Reports that were withdrawn leave the file with the next export. Others leave the collector when they expire,
or when a backup of before they came takes the place of its database: then the file stays as it is.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from collector.remote.download import count_lost
from ldp_client.documents import report
from ldp_client.documents.errors import InputError
from ldp_client.files.disk import STREAM, refuse_replacing_other
from ldp_client.words.text import counted
from schemas import Report, export_end
from schemas.export_end import is_end_line
from summaries.summary import FORMAT as SUMMARY

PARQUET = "PAR1"
COLUMNS = ["report_id", "study"]
# What files of reports begin with, or their first line names.
REPORTS = (report.FORMAT, export_end.FORMAT, ",".join(COLUMNS), PARQUET)
ADVICE = "the file was left as it was. Name another one, or give them up with --forget"
Fetched = TypeVar("Fetched", bound=Report)


class Row(NamedTuple):
    """A report in a file: its id, and its study's."""

    id: str
    study: str


def refuse_other_file(path: str, summary: bool) -> None:
    """Raises InputError where an export would replace what is none, nor empty. summary: whether it is one."""
    refuse_replacing_other(path, *([SUMMARY] if summary else REPORTS))


def keeping(reports: Iterable[Fetched], old: Path | None, wanted: tuple[str, str, str]) -> Iterator[Fetched]:
    """The same reports, by id; raises InputError behind the last one where others would be lost with a file.

    old: the file that they replace, if there is one; None to give up what it has. wanted: the collector's
    address, the study, and a key.
    """
    rows = iter(()) if old is None else _rows_of(old, wanted[1])
    missing: set[str] = set()
    before = next(rows, None)
    for one in reports:
        while before is not None and before.id < one.id:
            missing.add(before.id)
            before = next(rows, None)
        if before is not None and before.id == one.id:
            before = next(rows, None)
        yield one
    if before is not None:
        # A file in another order has some of these among the new ones, which the collector knows.
        missing.update(row.id for row in chain([before], rows))
    if lost := count_lost(*wanted, sorted(missing)):
        raise InputError(
            f"{old} has {counted(lost, 'report')} that the collector has no more and nobody withdrew: they "
            f"expired, or it was restored from an older backup; {ADVICE}",
            code="export.reports_lost_at_collector",
        )


def refuse_smaller(path: Path, text: str) -> None:
    """Raises InputError where a summary would replace one of more reports, another version or another study.

    It has no ids: nobody can tell what became of those that are missing.
    """
    if not _is_there(path):
        return
    new = json.loads(text)
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
        before, after = _answers(old), _answers(new)
        _require_study(path, old["study"], new["study"])
        is_other = old["version"] != new["version"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise _unreadable(path) from None
    if is_other:
        raise InputError(
            f"{path} is of version {old['version']}, this of version {new['version']}; {ADVICE}",
            code="export.older_version",
        )
    if (fewer := before - after) > 0:
        raise InputError(
            f"{path} has {counted(fewer, 'answer')} more than this one: reports were withdrawn, they "
            f"expired, or the collector was restored from an older backup; {ADVICE}",
            code="export.fewer_answers",
        )


def _answers(summary: Any) -> int:
    return sum(question["n"] for question in summary["questions"].values())


def _is_there(path: Path) -> bool:
    return str(path) != STREAM and path.is_file() and path.stat().st_size > 0


def _rows_of(path: Path, study: str) -> Iterator[Row]:
    """The reports in a file, as they come. Raises InputError where it cannot be read, or is another's."""
    if not _is_there(path):
        return
    try:
        for row in _read(path):
            _require_study(path, row.study, study)
            if not isinstance(row.id, str):
                raise TypeError
            yield row
    except (OSError, ValueError, LookupError, TypeError, csv.Error):
        raise _unreadable(path) from None


def _read(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        beginning = file.read(len(PARQUET))
    if beginning == PARQUET.encode():
        return _parquet_rows(path)
    return _json_rows(path) if beginning.startswith(b"{") else _csv_rows(path)


def _json_rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for line in file:
            if not is_end_line(line):
                found = json.loads(line)
                yield Row(found["id"], found["study"])


def _csv_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), 2 * report.MAX_BYTES))
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, strict=True):
            yield Row(*(row[column] for column in COLUMNS))


def _parquet_rows(path: Path) -> Iterator[Row]:
    from pyarrow.parquet import ParquetFile

    for batch in ParquetFile(path).iter_batches(columns=COLUMNS):
        for row in zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True):
            yield Row(*row)


def _require_study(path: Path, found: str, wanted: str) -> None:
    if found != wanted:
        raise InputError(
            f"{path} is an export of {found[:64]}, not of {wanted}: name another file",
            code="export.file_of_other_study",
        )


def _unreadable(path: Path) -> InputError:
    return InputError(
        f"{path} cannot be read, and may have reports that the collector has no more; {ADVICE}",
        code="export.old_file_unreadable",
    )
