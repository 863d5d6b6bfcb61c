"""Reports in CSV, as `ldpkit export --out reports.csv` and collectors write them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ldp_client.documents.errors import InputError
from ldp_client.documents.report import MAX_BYTES
from summaries.tables import COLUMNS, NO_REPORTS, PAYLOADS, Placed, report_of_row

FIRST = "report_id"
# A program that saved the file again may have quoted its header.
BEGINNINGS = (FIRST, f'"{FIRST}"')


def is_csv(path: str) -> bool:
    """Tell by its beginning whether a file has reports in CSV. Raises OSError."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return file.read(len(FIRST) + 2).startswith(BEGINNINGS)


def csv_rows(path: str) -> Iterator[Placed]:
    """Yield each report's place and a function that reads it. Raises InputError for a cut row, OSError."""
    name = Path(path).name
    # Base64 of the longest report.
    csv.field_size_limit(max(csv.field_size_limit(), 2 * MAX_BYTES))
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            header = next(rows)
            _check_header(name, header)
            for row in rows:
                where = f"{name}, line {rows.line_num}"
                if len(row) != len(header):
                    cells = f"{len(row)} cells under {len(header)} columns"
                    raise InputError(
                        f"{where}: {cells}: it was cut off, export it again", code="reports.row_cut_off"
                    )
                yield where, partial(report_of_row, dict(zip(header, row)))
        except (csv.Error, UnicodeDecodeError) as error:
            where = f"{name}, line {rows.line_num}"
            raise InputError(
                f"{where} is no CSV in UTF-8 ({error}): export it again", code="reports.not_csv"
            ) from None


def _check_header(name: str, header: list[str]) -> None:
    heads = {column.partition(".")[0] for column in header}
    missing = [column for column in COLUMNS if column not in heads]
    if missing:
        what = f"{PAYLOADS}QUESTION" if missing[0] == "payloads" else missing[0]
        raise InputError(
            f"{name} has no column {what} between commas: {NO_REPORTS}", code="reports.column_missing"
        )
    if len(set(header)) < len(header):
        raise InputError(f"{name} has a column twice: export it again", code="reports.duplicate_column")
