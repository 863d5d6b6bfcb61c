"""Read a survey's table, CSV or Parquet, with its design, without silently dropping anything."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from inference.analyses.channel import stacked
from inference.analyses.design_file import ColumnDesign, Design, read_design
from inference.analyses.formula import known_column
from inference.analyses.matrices import columns_of
from inference.analyses.public_columns import as_taken, notes_of
from inference.analyses.table import WAVE, Codes, Private, Table, concat, level_text, refuse_wave, table_of
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted, rounded_up
from schemas.disk import read_bytes
from summaries.people import YES_OR_NO
from summaries.people.codebook import Codebook, Column, stated, typed
from summaries.people.files import read_frame


def load_survey(
    path: str | Mapping[str, str],
    design_path: str,
    formula: str | None = None,
    drop: bool = False,
    also: Sequence[str] = (),
    codebook: Codebook | None = None,
) -> tuple[Table, Design]:
    """Read a table's file, or those of several waves, and the design.

    path: of waves, {name: path}; `wave` is an added public column, by which the design may have matrices,
    `"rows": {"wave": NAME}`. formula: its columns are read, and `also`; only their
    blanks matter. drop: leave out rows with blanks, and say so in a note, instead of refusing them. codebook:
    what public columns mean. Raises InputError.
    """
    text = read_bytes(design_path)
    design, paths = read_design(text), {"": path} if isinstance(path, str) else path
    reports = {one.name: Column(levels=tuple(one.reports)) for one in design.columns}
    frames = {name: read_frame(file) for name, file in paths.items()}
    # 1. The columns that are read: all that the formula names, which every table has.
    added = [] if list(paths) == [""] else [WAVE]
    known = [str(column) for frame in frames.values() for column in frame.columns]
    used = columns_of(formula, [*dict.fromkeys(known), *added], also)
    own = [column for column in used if column not in added]
    # 2. A table of each file.
    tables = {}
    for name, frame in frames.items():
        if added:
            refuse_wave(name, frame.columns)
        for column in dict.fromkeys([*reports, *own]):
            known_column(column, list(frame.columns), f"wave {name}: " if added else "")
        file, named = Path(paths[name]).name, dict.fromkeys([*own, *design.grouping])
        public = [column for column in named if column in frame.columns and column not in reports]
        cells = stated(frame, file, codebook, public)
        cells = cells.assign(**{one: typed(cells[one], reports[one]) for one in reports})
        rows = [f"{row} of wave {name}" if added else str(row) for row in range(1, len(frame) + 1)]
        whole = cells.set_axis(rows, axis=0).assign(**dict.fromkeys(added, name))
        digest = hashlib.sha256(text + b"\0" + read_bytes(paths[name])).hexdigest()
        tables[name] = survey_of(whole, design, own, drop, digest)
    return replace(concat(tables, used), noise=next(iter(tables.values())).noise), design


def survey_of(
    frame: pd.DataFrame,
    design: Design,
    used: Sequence[str] | None = None,
    drop: bool = False,
    digest: str = "",
) -> Table:
    """Return the table of a frame under a design; its index names rows. See `load_survey`."""
    # 1. The columns.
    every = [column.name for column in design.columns]
    used = [*map(str, frame.columns), *every] if used is None else used
    for name in design.grouping:
        known_column(name, list(frame.columns), "the design's rows: ")
    private = [column for column in design.columns if column.name in used]
    for column in private:
        known_column(column.name, list(frame.columns), "")
    public = [name for name in map(str, frame.columns) if name in used and name not in every]
    read = list(dict.fromkeys([*public, *design.grouping]))
    frame = as_taken(frame, read)
    # 2. Rows with blanks.
    blank = frame[[*(one.name for one in private), *read]].isna()
    rows, notes = blank.any(axis=1).to_numpy(), []
    if rows.any():
        worst = ", ".join(f"{name} {count}" for name, count in blank.sum().items() if count)
        many = f"{counted(int(rows.sum()), 'row')} of {len(frame)}"
        if not drop:
            raise InputError(
                f"{many} have blank cells ({worst}; the first is row {frame.index[int(np.argmax(rows))]}): "
                "fill them in, or omit those rows with --missing drop, which is valid only if blanks are "
                "random",
                code="table.blank_cells",
            )
        if rows.all():
            raise InputError(
                f"every row has a blank cell ({worst}): no row remains", code="table.all_rows_blank"
            )
        notes.append(
            f"{many} had blank cells ({worst}) and were left out: the result holds for people without blanks"
        )
        frame = frame[~rows]
    notes += notes_of(frame, public)
    # 3. The table, with each row's report under the channel of its group of rows.
    columns = []
    for one in private:
        reports = codes_of(frame[one.name], one.reports, one.name)
        codes = groups_of_rows(frame, one) * len(one.reports) + reports
        channel = stacked([part.channel for part in one.parts])
        columns.append(Private(one.name, one.answers, codes, channel, one.ordered))
        notes += one.notes
    return table_of(
        frame[public],
        columns,
        tuple(notes),
        digest,
        (*design.in_words(), *_epsilons(private)),
    )


def _epsilons(columns: Sequence[ColumnDesign]) -> Iterator[str]:
    """Yield the ε of each column whose matrices are known: its largest log ratio of a report's chances."""
    for one in columns:
        known = [part.channel.chances[0, 0] for part in one.parts if not part.channel.weights]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = [np.nanmax(np.log(chances.max(axis=0) / chances.min(axis=0))) for chances in known]
        if len(known) == len(one.parts):
            epsilon = f"ε = {rounded_up(max(each), 6)}" if max(each) < np.inf else "no finite ε"
            yield f"{one.name}: these dice have {epsilon}"


def codes_of(column: pd.Series, labels: Sequence[str], name: str) -> Codes:
    """Return the index of each cell's label; a whole number is written without a point. Raises InputError."""
    texts = [str(cell).lower() if isinstance(cell, bool) else level_text(cell) for cell in column]
    places = {label: place for place, label in enumerate(labels)}
    if set(labels) == {"no", "yes"}:
        places = {word: places["yes" if is_yes else "no"] for word, is_yes in YES_OR_NO.items()}
    elif {label.lower() for label in labels} == {"false", "true"}:
        # Files write truth values in several ways.
        places = {label.lower(): place for label, place in places.items()}
    if places.keys() >= {"false", "true"}:
        texts = [text.lower() for text in texts]
    found = np.asarray([places.get(text, -1) for text in texts], np.int64)
    if (found < 0).any():
        row = int(np.argmin(found))
        raise InputError(
            f"{name}, row {column.index[row]}: {texts[row]!r} is no report of the design. Reports are "
            f"{', '.join(labels)}",
            code="dice.unknown_report",
        )
    return found


def groups_of_rows(frame: pd.DataFrame, design: ColumnDesign) -> Codes:
    """Return the index of each row's part of the design. Raises InputError if none, or two, apply."""
    texts = {name: frame[name].map(level_text).astype(str) for part in design.parts for name in part.rows}
    matches = np.ones((len(design.parts), len(frame)), bool)
    for place, part in enumerate(design.parts):
        for name, value in part.rows.items():
            matches[place] &= (texts[name] == value).to_numpy()
    often = matches.sum(axis=0)
    if (often != 1).any():
        row = int(np.argmax(often != 1))
        how = "several matrices" if often[row] else "no matrix"
        raise InputError(
            f"{design.name}: row {frame.index[row]} belongs to {how} of the design",
            code="dice.unknown_group",
        )
    return np.asarray(matches.argmax(axis=0), np.int64)
