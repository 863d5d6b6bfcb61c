"""Read a table's file: CSV with any separator, JSON, Parquet, Stata or SPSS, as it is written."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from ldp_client.documents.errors import InputError, MissingExtraError
from schemas.disk import refuse_workbook

SEPARATORS = (",", ";", "\t")
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def read_frame(path: str) -> pd.DataFrame:
    """Read a table's file by the ending of its name: .csv, .tsv, .json, .ndjson, .parquet, .dta or .sav.

    Returns:
        Texts without spaces around them, and None for an empty cell. Parquet, Stata and JSON keep numbers.
        Rows are numbered from 1.

    Raises:
        InputError: the file cannot be read, or is no table; the error names the row.
    """
    refuse_workbook(path)
    read = READERS.get(Path(path).suffix.lower(), _read_csv)
    frame = read(path)
    _check_header(Path(path).name, [str(name) for name in frame.columns])
    texts = [name for name, kind in frame.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    frame = frame.assign(**{str(name): frame[name].map(_stripped).astype(object) for name in texts})
    return frame.set_axis(range(1, len(frame) + 1), axis=0)


def _stripped(cell: Any) -> Any:
    return (cell.strip() or None) if isinstance(cell, str) else cell


def _check_header(name: str, header: Sequence[str]) -> None:
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice or "" in header:
        problem = f"{twice[0]!r} twice" if twice else "a column without a name"
        raise InputError(f"{name}: the header has {problem}", code="table.wrong_header")


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.cannot_read") from None


def _text_of(path: str) -> str:
    """Return a file's text. Excel writes UTF-16, or UTF-8, with a mark in front."""
    content = _bytes_of(path)
    try:
        return content.decode(BYTE_ORDER_MARKS.get(content[:2], "utf-8-sig")).removeprefix("\ufeff")
    except UnicodeError:
        raise InputError(
            f"{path} is not UTF-8 text: save it as CSV in UTF-8", code="files.not_utf8"
        ) from None


def _read_csv(path: str) -> pd.DataFrame:
    """Read text with a header. Its separator gives the header the most columns."""
    # A line ends with CR or LF. Python's other ends of lines occur within cells.
    name, lines = Path(path).name, StringIO(_text_of(path), newline="").readlines()
    separators: Sequence[str] = SEPARATORS
    if lines and lines[0].lower().startswith("sep="):
        # Excel's own way to state the separator.
        separators = (lines.pop(0).rstrip("\r\n")[4:5] or ",",)
    if not any(line.strip() for line in lines):
        raise InputError(
            f"{name} is empty: write the names of the columns in its first line, then the rows",
            code="files.no_header",
        )
    first = next(line for line in lines if line.strip())
    separator = max(separators, key=lambda mark: len(next(csv.reader([first], delimiter=mark))))
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{name} is not CSV: {error}", code="files.not_csv") from None
    while not rows[-1]:
        rows.pop()
    header, *rows = [row for place, row in enumerate(rows) if row or place]
    header = [cell.strip() for cell in header]
    # An empty line is an empty cell if there is only one column; otherwise it is no row.
    rows = [row or [""] for row in rows if row or len(header) == 1]
    # Spreadsheets end with rows of separators alone.
    while len(header) > 1 and rows and not any(map(str.strip, rows[-1])):
        rows.pop()
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise InputError(
                f"{name}, row {number}: has {len(row)} columns, the header {len(header)}",
                code="table.wrong_column_count",
            )
    _check_header(name, header)
    cells = {column: [row[place] for row in rows] for place, column in enumerate(header)}
    return pd.DataFrame(cells, dtype=object)


def _read_json(path: str) -> pd.DataFrame:
    """Read a list of objects, Kobo's `{"results": [ … ]}`, or an object on each line (ODK, SurveyJS)."""
    name, text = Path(path).name, _text_of(path)
    try:
        rows = json.loads(text)
    except ValueError:
        try:
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        except ValueError as error:
            raise InputError(f"{name} is not JSON: {error}", code="files.not_json") from None
    if isinstance(rows, dict):
        if isinstance(rows.get("results"), list) and rows.get("next"):
            raise InputError(
                f"{name} is one page of its answers: request all of them, with a larger `limit`",
                code="files.one_page",
            )
        rows = rows["results"] if isinstance(rows.get("results"), list) else [rows]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{name} must have one object for each person", code="files.line_object")
    flat = [dict(_flat(row)) for row in rows]
    columns = list(dict.fromkeys(column for row in flat for column in row))
    cells = {column: [row.get(column) for row in flat] for column in columns}
    return pd.DataFrame(
        {column: pd.Series(each, dtype=object) for column, each in cells.items()}
    ).infer_objects()


def _flat(row: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """List an object's cells. Cells of an inner object are named `outer.inner`."""
    cells: list[tuple[str, Any]] = []
    for name, cell in row.items():
        cells += _flat(cell, f"{prefix}{name}.") if isinstance(cell, Mapping) else [(prefix + name, cell)]
    return cells


def _read_by_pandas(read: Callable[[str], pd.DataFrame], format_name: str) -> Callable[[str], pd.DataFrame]:
    def read_file(path: str) -> pd.DataFrame:
        _bytes_of(path)
        try:
            frame = read(path)
        except ImportError as error:
            raise MissingExtraError(str(error.name), "tables") from None
        except Exception:
            problem = f"is damaged, or is not a file of {format_name}"
            raise InputError(f"{path} {problem}", code="files.damaged_table") from None
        # Value labels of Stata and SPSS.
        labelled = frame.select_dtypes("category")
        return frame.assign(**{str(name): column.astype(object) for name, column in labelled.items()})

    return read_file


READERS: dict[str, Callable[[str], pd.DataFrame]] = {
    ".json": _read_json,
    ".ndjson": _read_json,
    ".jsonl": _read_json,
    ".parquet": _read_by_pandas(pd.read_parquet, "Parquet"),
    ".pq": _read_by_pandas(pd.read_parquet, "Parquet"),
    ".dta": _read_by_pandas(pd.read_stata, "Stata in which each code has its own label"),
    ".sav": _read_by_pandas(pd.read_spss, "SPSS"),
}
