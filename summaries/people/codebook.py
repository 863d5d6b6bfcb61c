"""A codebook: what the cells of a table's columns mean, and what looks odd without one."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted, visible
from summaries.people.files import read_frame

# Texts that are missing values, as pandas has them.
MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
)
MISSING |= {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
# Levels that may be missing values, in lower case.
DOUBTFUL = frozenset(
    {"?", ".", "..", "-", "--", "n.a.", "dk", "don't know", "missing", "no answer", "not stated"}
)
DOUBTFUL |= {"refused", "unknown"}
# Whole numbers that surveys use as codes of missing values, such as -99 and 998.
_CODE_OF_MISSING = re.compile(r"-?(9+[789]|8{2,}|7{2,})|-[1-9]")
# Whole numbers that are names: with leading zeros, or with more digits than float64 keeps.
_NAME = re.compile(r"[+-]?(0[0-9]+|[0-9]{16,})")
# Numbers with a comma, which may separate decimals or thousands.
_COMMA = re.compile(r"[+-]?\d+,\d+")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-") | {ord("’"): "'"}
# A gap to all other numbers, as a share of their range, from which a code is no plausible number.
GAP = 0.5
# The most levels that a drafted codebook lists.
MOST_LEVELS = 50
NUMBER, TEXT = "number", "text"


@dataclass(frozen=True, slots=True)
class Column:
    """What a column's cells mean.

    Attributes:
        type: "number", "text", or "" if the cells decide.
        missing: texts for a missing value, in addition to pandas' own.
        levels: its levels, in order; empty if any text is a level.
        bounds: the least and the greatest number, None if any number is possible.
    """

    type: str = ""
    missing: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None


Codebook = Mapping[str, Column]


def read_codebook(path: str) -> Codebook:
    """Read a codebook: {column: {"type": …, "missing": […], "levels": […], "bounds": [low, high]}}.

    Raises InputError.
    """
    try:
        document = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.cannot_read") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}", code="files.not_json") from None
    if not isinstance(document, dict):
        raise InputError(f"{path} must be an object with the columns' names", code="codebook.invalid")
    return {name: _column_of(f"{Path(path).name}: {name}", entry) for name, entry in document.items()}


def _column_of(where: str, entry: Any) -> Column:
    fields = ("type", "missing", "levels", "bounds")
    if not isinstance(entry, dict) or set(entry) - set(fields):
        raise InputError(f"{where} may have {', '.join(fields)}, and nothing else", code="codebook.invalid")
    kind, bounds = entry.get("type", ""), entry.get("bounds")
    if kind not in ("", NUMBER, TEXT):
        raise InputError(f"{where}.type: choose number or text", code="codebook.invalid")
    lists = [entry.get(field, []) for field in ("missing", "levels")]
    if not all(
        isinstance(each, list) and all(isinstance(text, str | int | float) for text in each) for each in lists
    ):
        raise InputError(f"{where}: missing and levels are lists of texts", code="codebook.invalid")
    # They are equal in the draft of a column with one number.
    is_pair = isinstance(bounds, list) and [type(each) in (int, float) for each in bounds] == [True, True]
    if bounds is not None and not (is_pair and bounds[0] <= bounds[1]):
        raise InputError(f"{where}.bounds: write the least and the greatest number", code="codebook.invalid")
    missing, levels = (tuple(map(str, each)) for each in lists)
    return Column(kind, missing, levels, None if bounds is None else (float(bounds[0]), float(bounds[1])))


def read_table(path: str) -> pd.DataFrame:
    """Read a table of people from a file, without a codebook. See `stated`."""
    return stated(read_frame(path), Path(path).name)


def read_census(path: str) -> pd.DataFrame:
    """Read a census, whose levels are matched with a table's: NA may be Namibia."""
    frame = read_frame(path)
    return frame.assign(**{str(name): typed(cells, missing=frozenset([""])) for name, cells in frame.items()})


def stated(
    frame: pd.DataFrame,
    name: str,
    codebook: Codebook | None = None,
    columns: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> pd.DataFrame:
    """Return a table as its codebook states it. Nothing is guessed: odd cells are refused.

    Args:
        frame: what `read_frame` returned.
        name: the file's name, for errors.
        codebook: what columns mean.
        columns: the columns that are used (default: all). Odd cells of others do not matter.
        bounds: of the numbers that a study asks for. Cells are then true answers, which errors do not show.

    Returns:
        The frame, with each used column in float64, or as texts; a missing value is NaN or None.

    Raises:
        InputError: a cell is odd and its column is not in the codebook, or it contradicts the codebook.
    """
    codebook, changed, private = codebook or {}, {}, bounds is not None
    for column in codebook:
        if column not in frame.columns:
            raise InputError(f"{name} lacks the codebook's column {column}", code="codebook.unknown_column")
    for column in [str(each) for each in frame.columns if columns is None or each in columns]:
        entry, where = codebook.get(column, Column()), f"{name}: {column}"
        is_list = np.asarray([isinstance(cell, list | tuple | np.ndarray) for cell in frame[column]])
        if is_list.any():
            at = f"{where}, row {frame.index[int(np.argmax(is_list))]}"
            raise InputError(f"{at}: holds a list: write a column for each answer", code="table.holds_list")
        asked = None if bounds is None else bounds.get(column)
        # In a column of numbers, 08 is no name.
        is_number = asked is not None and not entry.type and not entry.levels
        # A study's choice may be None, or NA.
        words = frozenset([""]) if private and asked is None else MISSING
        changed[column] = typed(frame[column], replace(entry, type=NUMBER) if is_number else entry, words)
        _check(changed[column], entry, where, private)
        if private and asked is None:
            # The study has the levels.
            continue
        for odd in oddities(changed[column], entry, asked):
            raise InputError(f"{where}: {odd.in_words(private)}", code=odd.code)
    return frame.assign(**changed)


def typed(cells: pd.Series, entry: Column = Column(), missing: frozenset[str] = MISSING) -> pd.Series:
    """Return a column of numbers if all cells are numbers, and none is a name such as 007; else of texts."""
    if pd.api.types.is_bool_dtype(cells):
        return (
            cells.map({True: "true", False: "false"}, na_action="ignore")
            .astype(object)
            .where(cells.notna(), None)
        )
    # A code may be written -99, or -99.0.
    codes = [code for code in map(number_in, entry.missing) if code is not None]
    is_text = bool(entry.levels) or entry.type == TEXT
    if pd.api.types.is_numeric_dtype(cells) and not is_text:
        return cells.astype(np.float64).where(~cells.isin(codes)) if cells.dtype.kind in "fiu" else cells
    known = missing - set(entry.levels) | set(entry.missing)
    filled = [None if cell is None or cell is pd.NA or _text(cell) in known else cell for cell in cells]
    if not all(cell is None or isinstance(cell, str | int | float | bool) for cell in filled):
        return pd.Series(filled, index=cells.index, dtype=object)
    texts = [None if cell is None else _text(cell) for cell in filled]
    if entry.levels:
        # Pandas and R write a column of whole numbers with empty cells as 1.0.
        without_point = {f"{level}.0": level for level in entry.levels if f"{level}.0" not in entry.levels}
        texts = [None if text is None else without_point.get(text, text) for text in texts]
    numbers = [np.nan if text is None else number_in(text) for text in texts]
    has_names = any(text is not None and _NAME.fullmatch(text) for text in texts)
    if None in numbers or is_text or (has_names and entry.type != NUMBER):
        return pd.Series(texts, index=cells.index, dtype=object)
    found = pd.Series(numbers, cells.index, np.float64)
    return found.where(~found.isin(codes))


def _text(cell: Any) -> str:
    """Return a cell as text: True as true, and a whole number without a point."""
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def number_in(cell: str) -> float | None:
    """Return the finite number that a text is, without underscores; None if it is none."""
    try:
        number = float(cell) if "_" not in cell else np.nan
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _check(column: pd.Series, entry: Column, where: str, private: bool) -> None:
    """Raise InputError for the first cell that contradicts the codebook."""
    if entry.bounds is not None or entry.type == NUMBER:
        wanted = "must be a number"
        is_wrong = column.notna() & column.map(lambda cell: number_in(_text(cell)) is None)
        if entry.bounds is not None and column.dtype != object:
            low, high = entry.bounds
            wanted = f"must be between {low:g} and {high:g}"
            is_wrong = column.notna() & ~column.between(low, high)
    elif entry.levels:
        wanted = f"must be one of the codebook's {len(entry.levels)} levels"
        is_wrong = column.notna() & ~column.isin(entry.levels)
    else:
        return
    if is_wrong.any():
        row = column.index[int(np.argmax(is_wrong.to_numpy()))]
        shown = "" if private else f" {visible(_text(column[row]))[:40]!r}"
        raise InputError(f"{where}, row {row}:{shown} {wanted}", code="codebook.contradicted")


@dataclass(frozen=True, slots=True)
class Oddity:
    """Cells that may not mean what they say.

    Attributes:
        cells: their texts.
        rows: how many rows have them.
        code: the error's code.
    """

    cells: tuple[str, ...]
    rows: int
    code: str = "table.looks_missing"

    def in_words(self, private: bool = False) -> str:
        """Return what is odd, and what to write into the codebook."""
        rows = counted(self.rows, "row")
        if self.code == "table.decimal_comma":
            return f"{rows} with a comma in a number: write 7.5, not 7,5"
        if self.code != "table.looks_missing":
            shown = f"levels in {rows}" if private else " and ".join(map(_exactly, self.cells))
            return f'{shown} look alike: correct the file, or write the column\'s "levels" in --codebook FILE'
        if private:
            return f'{rows} may hold a code for a missing value: write its "missing" in --codebook FILE'
        (cell,) = self.cells
        return (
            f'{cell!r} in {rows} looks missing: write "missing": [{json.dumps(cell)}] in --codebook FILE, '
            'or "levels" or "bounds" if it is not'
        )


def oddities(
    column: pd.Series, entry: Column = Column(), asked: tuple[float, float] | None = None
) -> Iterator[Oddity]:
    """Yield what is odd about a column that the codebook does not decide. asked: a study's bounds for it."""
    if entry.bounds is not None or entry.levels or entry.type:
        return
    if column.dtype != object:
        yield from (Oddity((code,), rows) for code, rows in _codes_in(column, asked))
        return
    rows_of = {str(level): int(rows) for level, rows in column.dropna().map(_text).value_counts().items()}
    yield from (Oddity((level,), rows) for level, rows in rows_of.items() if _plain(level) in DOUBTFUL)
    with_comma = [level for level in rows_of if _COMMA.fullmatch(level)]
    if with_comma:
        yield Oddity(tuple(with_comma[:1]), sum(map(rows_of.__getitem__, with_comma)), "table.decimal_comma")
    alike: dict[str, list[str]] = {}
    for level in rows_of:
        alike.setdefault(_plain(level), []).append(level)
    for levels in alike.values():
        if len(levels) > 1:
            rows = sum(rows_of[level] for level in levels)
            yield Oddity(tuple(sorted(levels)[:2]), rows, "table.levels_alike")


def _codes_in(column: pd.Series, asked: tuple[float, float] | None) -> Iterator[tuple[str, int]]:
    """Yield numbers like codes that are far from all others or beyond the bounds, with their rows."""
    counts = column.dropna().value_counts(sort=False)
    texts = {number: _text(float(number)) for number in counts.index}
    codes = [number for number in counts.index if _CODE_OF_MISSING.fullmatch(texts[number])]
    rest = counts.index.difference(codes)
    low, high = (float(rest.min()), float(rest.max())) if len(rest) else (np.nan, np.nan)
    for code in sorted(codes):
        is_far = len(rest) > 1 and max(low - code, code - high) > GAP * (high - low)
        is_beyond = asked is not None and not asked[0] <= code <= asked[1]
        if is_far or is_beyond or (len(rest) > 1 and code < 0 <= low):
            yield texts[code], int(counts[code])


def _plain(level: str) -> str:
    """Return a level without what people hardly see: case, blanks, dashes, normal form, marks of no width."""
    seen = "".join([mark for mark in level if unicodedata.category(mark) != "Cf"])
    folded = unicodedata.normalize("NFKC", seen).casefold().translate(_DASHES)
    return " ".join(folded.split())


def _exactly(level: str) -> str:
    """Return a level so that levels that look alike differ: with marks for repeated blanks, and escapes."""
    shown = re.sub(r" (?= )|(?<= ) ", "\N{OPEN BOX}", level)
    return ascii(shown).replace("\\u2423", "\N{OPEN BOX}")


def drafted(frame: pd.DataFrame) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Draft a codebook of a table, for a person to correct. Return it, and a line for each odd column."""
    entries: dict[str, dict[str, Any]] = {}
    lines = []
    for name in map(str, frame.columns):
        cells = frame[name].dropna().tolist() if frame[name].dtype == object else []
        if not all(isinstance(cell, str | int | float) for cell in cells):
            lines.append(f"{name}: left out: holds lists, dates or other values")
            continue
        missing: list[str] = []
        while True:
            column = typed(frame[name], Column(missing=tuple(missing)))
            odd = list(oddities(column))
            lines += [f"{name}: {each.in_words()}" for each in odd]
            codes = [cell for each in odd if each.code == "table.looks_missing" for cell in each.cells]
            if not codes:
                break
            # Without its texts, a column may be one of numbers with codes.
            missing += codes
        entry: dict[str, Any] = {"missing": missing} if missing else {}
        if column.dtype != object:
            entry["type"] = NUMBER
            if column.notna().any():
                entry["bounds"] = [float(column.min()), float(column.max())]
        elif column.nunique() <= MOST_LEVELS:
            entry["levels"] = sorted(map(_text, column.dropna().unique()))
        else:
            entry["type"] = TEXT
        entries[name] = entry
    return entries, list(dict.fromkeys(lines))
