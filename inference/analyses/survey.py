"""Read a survey's table, CSV or Parquet, with its design, without silently dropping anything."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd

from inference.analyses.channel import stacked
from inference.analyses.concatenation import POOLED, joined
from inference.analyses.design_file import ColumnDesign, Design, read_design
from inference.analyses.formula import known_column
from inference.analyses.marks import ALIKE, alike, refuse_alike
from inference.analyses.matrices import columns_of
from inference.analyses.public_columns import INEXACT, as_taken, notes_of, plain_whole
from inference.analyses.table import WAVE, Codes, Private, Table, table_of
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import counted

REFUSE, DROP = "error", "drop"
BLANKS = (REFUSE, DROP)
PARQUET = (".parquet", ".pq")
# From this share of numbers on, a column is numeric.
MIXED = 0.5
_WHOLE = re.compile(r"[+-]?[0-9]+")


def load_survey(
    path: str, design_path: str, formula: str | None = None, blanks: str = REFUSE, also: Sequence[str] = ()
) -> tuple[Table, Design]:
    """Read a table's file and its design.

    formula: its columns are read, and `also`; only their blanks matter. blanks: "error" rows with blanks, or
    "drop" such rows, which are counted and noted. Raises InputError.
    """
    design_text = _bytes_of(design_path)
    design = read_design(design_text)
    frame = read_frame(path)
    for column in design.columns:
        known_column(column.name, list(frame.columns), f"{Path(design_path).name}: ")
    known = [str(name) for name in frame.columns]
    used = columns_of(formula, known, also)
    for name in used:
        known_column(name, known)
    digest = hashlib.sha256(design_text + b"\0" + _bytes_of(path)).hexdigest()
    return survey_of(frame, design, used, blanks, digest), design


def load_waves(
    waves: Mapping[str, str], design_path: str, formula: str | None, blanks: str, also: Sequence[str]
) -> tuple[Table, Design]:
    """Read tables of several waves under one design, {name: path}, and stack them; `wave` is a column.

    The design may have matrices by wave, `"rows": {"wave": NAME}`. Other arguments: see `load_survey`.
    """
    if len(waves) < 2:
        raise UsageError("waves are compared with one another: give two or more", code="wave.only_one")
    design_text = _bytes_of(design_path)
    design = read_design(design_text)
    frames = {name: read_frame(path) for name, path in waves.items()}
    for name, frame in frames.items():
        if WAVE in frame.columns:
            raise InputError(
                f"wave {name}: {waves[name]} already has a column wave: rename it",
                code="wave.column_called_wave",
            )
    known = list(
        dict.fromkeys([*(str(column) for frame in frames.values() for column in frame.columns), WAVE])
    )
    used = columns_of(formula, known, also)
    tables = {}
    for name, frame in frames.items():
        frame = frame.assign(**{WAVE: name})
        for column in used:
            known_column(column, list(frame.columns), f"wave {name}: ")
        try:
            table = survey_of(frame, design, used, blanks)
        except InputError as error:
            raise InputError(f"wave {name}: {error}", code="wave.table_invalid") from None
        public = [column for column in used if column in table.public.columns and column != WAVE]
        # Equal notes of two waves are about other rows.
        notes = tuple(f"wave {name}: {note}" for note in table.notes)
        tables[name] = replace(table, public=table.public[public], notes=notes)
    parts = [f"{name}\0".encode() + _bytes_of(path) for name, path in waves.items()]
    digest = hashlib.sha256(b"\0".join([design_text, *parts])).hexdigest()
    found = joined(tables, WAVE)
    pairs = _alike_in_all(list(waves.values()), [one for one in used if one != WAVE])
    notes = (*found.notes, *(() if WAVE in used else (POOLED,)))
    return replace(found, alike=pairs, notes=notes, digest=digest, noise=tuple(design.in_words())), design


def _alike_in_all(paths: Sequence[str], used: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return, for numeric columns, two cells that are the same number, each from any file."""
    cells: dict[str, list[str]] = {}
    for path in paths:
        if not path.lower().endswith(PARQUET):
            header, rows = read_rows(path)
            for name in used:
                cells.setdefault(name, []).extend(row[header.index(name)] for row in rows)
    return alike({name: column for name, column in cells.items() if typed(column).dtype == float})


def load_design(path: str) -> Design:
    """Read a design's file. Raises InputError."""
    return read_design(_bytes_of(path))


def survey_of(
    frame: pd.DataFrame,
    design: Design,
    used: Sequence[str] | None = None,
    blanks: str = REFUSE,
    digest: str = "",
) -> Table:
    """Return the table of a frame under a design; see `load_survey`."""
    if blanks not in BLANKS:
        raise UsageError(f"--missing must be {' or '.join(BLANKS)}", code="table.unknown_missing_rule")
    grouping = {column for one in design.columns for part in one.parts for column in part.rows}
    for name in sorted(grouping):
        known_column(name, list(frame.columns), "the design's rows: ")
    read = [name for name in frame.columns if used is None or name in used]
    open_ones = [str(name) for name in read if name not in {one.name for one in design.columns}]
    pairs = dict(frame.attrs.get(ALIKE, {}))
    refuse_alike(pairs, sorted(grouping))
    known = design.labels
    frame = as_taken(frame, [*open_ones, *sorted(grouping - {*open_ones})], labels=known)
    needed = [*read, *(name for name in grouping if name not in read)]
    frame, notes = _without_blanks(frame, needed, blanks)
    for name in open_ones:
        _refuse_mixed(frame[name], name)
    private = [_private(frame, one) for one in design.columns if one.name in read]
    public = frame.drop(columns=[one.name for one in design.columns], errors="ignore")
    noise = tuple(design.in_words())
    notes += (
        *notes_of(frame, open_ones),
        *(note for one in design.columns if one.name in read for note in one.notes),
    )
    return replace(table_of(public, private, notes, digest, noise), alike=pairs)


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None


def read_frame(path: str) -> pd.DataFrame:
    """Read a CSV or Parquet file unchanged. Raises InputError."""
    if path.lower().endswith(PARQUET):
        try:
            frame = pd.read_parquet(path)
        except OSError as error:
            raise InputError(
                f"cannot read {path}: {error.strerror or 'not a Parquet file'}", code="files.not_readable"
            ) from None
        except Exception:
            raise InputError(
                f"{path} is damaged, or is not a Parquet file", code="files.not_parquet"
            ) from None
        return _without_spaces(frame)
    header, rows = read_rows(path)
    columns = dict(zip(header, zip(*rows, strict=True) if rows else [()] * len(header), strict=True))
    frame = pd.DataFrame({name: typed(column) for name, column in columns.items()})
    frame.attrs[ALIKE] = alike({name: cells for name, cells in columns.items() if frame[name].dtype == float})
    return frame


def _without_spaces(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with its text as `typed` reads it: stripped, and with blank cells missing."""
    texts = frame.select_dtypes(exclude=["number", "bool", "datetime", "timedelta"])
    return frame.assign(**{str(name): _stripped(column) for name, column in texts.items()})


def _stripped(column: pd.Series) -> pd.Series:
    cells = [_text(cell) for cell in column.astype(object)]
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Series(cells, index=column.index, dtype=object)
    levels = dict.fromkeys(level for one in column.cat.categories if (level := _text(one)) is not None)
    kept = pd.Categorical(cells, categories=list(levels), ordered=column.cat.ordered)
    return pd.Series(kept, index=column.index)


def _text(cell: object) -> object:
    """Return a cell without spaces around it, None if it is empty."""
    return (cell.strip() or None) if isinstance(cell, str) else cell


def read_rows(path: str) -> tuple[list[str], list[list[str]]]:
    name = Path(path).name
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None
    except UnicodeError:
        raise InputError(
            f"{path} is not UTF-8 text: save it as CSV in UTF-8", code="files.not_utf8"
        ) from None
    except csv.Error as error:
        raise InputError(f"{name} is not CSV: {error}", code="files.not_csv") from None
    while rows and not rows[-1]:
        rows.pop()
    # Above the last row a blank line is a blank cell if there is only one column; otherwise it is no row.
    alone = len(next(filter(None, rows), ())) == 1
    return _checked(name, [row or [""] for row in rows if row or alone])


def _checked(name: str, rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows below it. Raises InputError if they do not fit."""
    if not rows:
        raise InputError(
            f"{name} is empty: it needs a header with the names of the columns", code="table.empty"
        )
    header = [cell.strip() for cell in rows[0]]
    twice = [one for one in header if header.count(one) > 1]
    if twice or "" in header:
        raise InputError(
            f"{name}: the header has {f'{twice[0]!r} twice' if twice else 'a column without a name'}",
            code="table.wrong_header",
        )
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{name} is separated by semicolons: save it with commas", code="table.semicolons")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(header):
            raise InputError(
                f"{name}, row {number}: has {len(row)} columns, the header {len(header)}",
                code="table.wrong_column_count",
            )
    return header, rows[1:]


def typed(cells: Sequence[str]) -> pd.Series:
    """Return a numeric column if all cells are numbers that stay distinct; else text. Blanks are missing."""
    filled = [cell.strip() or None for cell in cells]
    try:
        numbers = [float("nan") if cell is None or "_" in cell else float(cell) for cell in filled]
        if any(cell is not None and "_" in cell for cell in filled) or _run_together(filled):
            return pd.Series(filled, dtype=object)
        if _finite(numbers, filled):
            return pd.Series(numbers, dtype=np.float64)
    except ValueError:
        pass
    return pd.Series(filled, dtype=object)


def _finite(numbers: Sequence[float], cells: Sequence[str | None]) -> bool:
    return all(np.isfinite(number) or cell is None for number, cell in zip(numbers, cells, strict=True))


def _run_together(cells: Sequence[str | None]) -> bool:
    """Return True if whole numbers are codes: with too many digits for float64, or with leading zeros."""
    whole = {cell.lstrip("+") for cell in cells if cell is not None}
    # A column with a fraction or a word has no such codes.
    if not all(_WHOLE.fullmatch(one) for one in whole):
        return False
    return any(abs(int(one)) >= INEXACT for one in whole) or len(set(map(plain_whole, whole))) < len(whole)


def _without_blanks(
    frame: pd.DataFrame, used: Sequence[str], blanks: str
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    gone = frame[list(used)].isna()
    rows = gone.any(axis=1).to_numpy()
    if not rows.any():
        return frame, ()
    worst = ", ".join(f"{name} {count}" for name, count in gone.sum().items() if count)
    if blanks == REFUSE:
        first = int(np.flatnonzero(rows)[0]) + 1
        raise InputError(
            f"{counted(int(rows.sum()), 'row')} of {len(frame)} have blank cells ({worst}; the first is row "
            f"{first}): fill them in, or omit those rows with --missing drop, which is valid only if "
            "blanks are random",
            code="table.blank_cells",
        )
    if rows.all():
        raise InputError(f"every row has a blank cell ({worst}): no row remains", code="table.all_rows_blank")
    note = (
        f"{counted(int(rows.sum()), 'row')} of {len(frame)} had blank cells ({worst}) and were left out: the "
        f"result holds for people without blanks"
    )
    return frame[~rows].reset_index(drop=True), (note,)


def _refuse_mixed(column: pd.Series, name: str) -> None:
    """Raise InputError for a numeric column with a few words or infinities, which would make it a factor."""
    # Text has type object or, from pandas itself, a string type.
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        return
    found = [_number(cell) for cell in column]
    numbers = np.asarray([number is not None and isfinite(number) for number in found])
    if MIXED < numbers.mean() < 1:
        row = int(np.flatnonzero(~numbers)[0])
        raise InputError(
            f"column {name} holds numbers, but in row {row + 1} {str(column.iloc[row])!r}: leave such cells "
            "blank, or write all its values as words if they are levels",
            code="table.numbers_and_words",
        )


def _private(frame: pd.DataFrame, design: ColumnDesign) -> Private:
    """Return a private column: each row's report, under the channel of its group of rows."""
    reports = codes_of(frame[design.name], design.reports, design.name)
    codes = _groups(frame, design) * len(design.reports) + reports
    channel = stacked([part.mixture.channel(f"{design.name}_") for part in design.parts])
    return Private(design.name, design.answers, codes, channel, design.ordered)


def codes_of(column: pd.Series, labels: Sequence[str], name: str) -> Codes:
    """Return the index of each cell's label. Numbers may be spelt differently. Raises InputError."""
    places: dict[object, int] = {}
    several: set[float] = set()
    for place, label in enumerate(labels):
        places[label] = place
        number = _number(label)
        if number is not None and places.setdefault(number, place) != place:
            several.add(number)
    found = np.full(len(column), -1, np.int64)
    for row, cell in enumerate(column):
        if not isinstance(cell, str) and cell in several:
            raise InputError(
                f"{name}, row {row + 1}: the number {cell:g} is several of the design's labels: put a letter "
                "before each",
                code="dice.number_is_several_reports",
            )
        text = str(cell).lower() if isinstance(cell, bool) else str(cell)
        place = places.get(text, places.get(_number(cell), -1))
        if place < 0:
            known = ", ".join(labels)
            raise InputError(
                f"{name}, row {row + 1}: {text!r} is no report of the design. Reports are {known}",
                code="dice.unknown_report",
            )
        found[row] = place
    return found


def _number(cell: object) -> float | None:
    """Return a cell's number, if it is one; a whole number with all its digits."""
    try:
        whole = isinstance(cell, Integral) or (isinstance(cell, str) and _WHOLE.fullmatch(cell))
        number = float(cell)  # type: ignore[arg-type]
        return int(cell) if whole and isfinite(number) else number  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None


def _groups(frame: pd.DataFrame, design: ColumnDesign) -> Codes:
    """Return the index of each row's part of the design. Raises InputError if none, or two, apply."""
    matches = np.stack([_matching(frame, part.rows) for part in design.parts])
    often = matches.sum(axis=0)
    wrong = np.flatnonzero(often != 1)
    if len(wrong):
        how = "no matrix" if often[wrong[0]] == 0 else "several matrices"
        raise InputError(
            f"{design.name}: row {wrong[0] + 1} belongs to {how} of the design", code="dice.unknown_group"
        )
    return np.asarray(matches.argmax(axis=0), np.int64)


def _matching(frame: pd.DataFrame, rows: Mapping[str, str]) -> np.ndarray:
    found = np.ones(len(frame), bool)
    for column, value in rows.items():
        number = _number(value)
        cells = frame[column]
        found &= np.asarray(
            [str(cell) == value or (number is not None and _number(cell) == number) for cell in cells]
        )
    return found
