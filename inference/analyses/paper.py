"""A study's records on paper: the filled-in sheet as a table, and joined with the reports of devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from inference.analyses.arms import ARM, DEVICE, PAPER
from inference.analyses.design_file import ColumnDesign, Design, Part
from inference.analyses.dice import Channel
from inference.analyses.formula import known_column
from inference.analyses.joining import joined
from inference.analyses.matrices import columns_of
from inference.analyses.reports import table_of_reports
from inference.analyses.survey import BLANK_CELLS, REFUSE, read_rows, survey_of
from inference.analyses.table import Table
from ldp_client.commands.paper import RECORD, SHEET, sheet_columns, sheet_name
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.paper import PaperQuestion
from ldp_client.documents.public import PublicField
from schemas import Report, Study

WORDS = "dice, as the study says"


def columns_of_arms(study: Study, formula: str) -> list[str]:
    """The questions and public fields that a formula names, and `arm` where it does."""
    known = [*(question.id for question in study.questions), *(field.id for field in study.public)]
    return columns_of(formula, [*known, *([ARM] if ARM not in known else [])])


def table_of_arms(
    study: Study,
    reports: Iterable[Report] | None,
    path: str,
    names: Sequence[str],
    blanks: str = REFUSE,
    design: Design | None = None,
) -> Table:
    """Devices' reports and records on paper, told apart by `arm`; without reports the records alone.

    names: questions and public fields. blanks: as for `load_survey`. design: instead of the study's matrices.
    Raises InputError for a record that the study does not allow, and for a question that is not on paper.
    """
    if ARM in [*(question.id for question in study.questions), *(field.id for field in study.public)]:
        raise InputError(f"study {study.id} has {ARM} of its own, which the arms' names would hide")
    entries = load_entries(study, path, names, blanks, design)
    if reports is None:
        return entries
    devices = table_of_reports(study, reports, [name for name in names if name != ARM])
    return replace(joined({DEVICE: devices, PAPER: entries}, ARM), digest=study.digest)


def load_entries(
    study: Study, path: str, names: Sequence[str], blanks: str = REFUSE, design: Design | None = None
) -> Table:
    """A filled-in sheet as a table; a number and a sheet alone are no record. Raises InputError."""
    columns = sheet_columns(study)
    assert study.paper is not None
    header, rows = read_rows(path)
    lead = f"{Path(path).name}: "
    for name in columns:
        known_column(name, header, lead)
    for name in header:
        known_column(name, columns, f"{lead}the sheet of {study.id} has no other columns; ")
    cells = [[None if cell.strip().lower() in BLANK_CELLS else cell.strip() for cell in row] for row in rows]
    places = {header.index(name) for name in (RECORD, SHEET)}
    filled = [row for row in cells if any(cell for at, cell in enumerate(row) if at not in places)]
    if not filled:
        raise InputError(f"{lead}no record is filled in")
    frame = pd.DataFrame(filled, columns=header, dtype=object)
    _check_records(frame, sheet_name(study), lead)
    for field in study.public:
        frame[field.id] = _public(frame, field, lead)
    stated = {one.name: one for one in design.columns} if design else {}
    for name in stated:
        known_column(
            name, [one.id for one in study.paper.questions], "the design: of what is asked on paper "
        )
    own = tuple(stated.get(one.id) or _design_of(one) for one in study.paper.questions)
    used = [name for name in names if name in header]
    try:
        return survey_of(frame, Design(own, None, {}), used, blanks, study.digest)
    except InputError as error:
        raise InputError(f"{lead}{error}") from None


def _check_records(frame: pd.DataFrame, sheet: str, lead: str) -> None:
    """Raises InputError for a record of other dice, without a number, or that was entered twice."""
    column = frame[RECORD]
    for record, name in zip(column, frame[SHEET], strict=True):
        if name != sheet:
            raise InputError(
                f"{lead}record {record}: its {SHEET} is {name or 'blank'}, and this study's is {sheet}: fit "
                "it with the study whose dice were used (`ldpkit paper` writes its sheets)"
            )
    if column.isna().any():
        raise InputError(f"{lead}a record has no number in {RECORD}: number all of them")
    twice = column[column.duplicated()]
    if len(twice):
        raise InputError(f"{lead}record {twice.iloc[0]} was entered twice: keep one of the two")


def _public(frame: pd.DataFrame, field: PublicField, lead: str) -> pd.Series:
    """A public field's values as the study lists them, blank ones missing."""
    values: list[str | None] = []
    for record, cell in zip(frame[RECORD], frame[field.id], strict=True):
        try:
            values.append(None if cell is None else field.value_of(cell))
        except AnswerError as error:
            raise InputError(f"{lead}record {record}: {field.id} {error.problem}") from None
    if field.choices:
        return pd.Series(pd.Categorical(values, categories=list(field.choices)))
    return pd.Series([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _design_of(one: PaperQuestion) -> ColumnDesign:
    rows = [tuple(Fraction(chance.numerator, chance.denominator) for chance in row) for row in one.matrix]
    return ColumnDesign(one.id, one.answers, one.reports, (Part({}, Channel(tuple(rows)), WORDS),))
