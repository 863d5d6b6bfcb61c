"""A study's records on paper: the filled-in sheet as a table, and joined with the reports of devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from inference.analyses.arms_differing import DEVICE, PAPER
from inference.analyses.blanks import Labels, cell_of, spelt_as_blanks
from inference.analyses.design_file import ColumnDesign, Design, Part
from inference.analyses.dice import Channel
from inference.analyses.formula import known_column
from inference.analyses.joining import joined
from inference.analyses.matrices import columns_of
from inference.analyses.naming import Name
from inference.analyses.reports import bounds_of, table_of_reports
from inference.analyses.same_rows import BY_CHANCE
from inference.analyses.survey import REFUSE, read_rows, survey_of
from inference.analyses.table import Table
from ldp_client.commands.paper import ARM, RECORD, SHEET, sheet_columns, sheet_name
from ldp_client.documents.errors import AnswerError, InputError
from ldp_client.documents.paper import PaperQuestion
from ldp_client.documents.public import PublicField
from schemas import Report, Study

WORDS = "dice, as the study says"
# Of the numbers in two waves, the part that says the same again where one's records are the other's. Fewer
# may be the same people's, of whom some say the same whatever the dice say.
COPIED = 0.95
# A number as people or programs write it. Three zeros behind a comma or point may be thousands.
WHOLE = re.compile(r"0*(\d+)(?:[.,]0{1,2})?")


def columns_of_arms(study: Study, formula: str | None, also: Sequence[Name] = ()) -> list[str]:
    """The questions and public fields that a formula names, `arm` where it does, and others."""
    known = [*(question.id for question in study.questions), *(field.id for field in study.public)]
    return columns_of(formula, [*known, *([ARM] if ARM not in known else [])], also)


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
    entries = load_entries(study, path, names, blanks, design)
    if reports is None:
        return entries
    devices = table_of_reports(study, reports, [name for name in names if name != ARM])
    return in_arms(study, {DEVICE: devices, PAPER: entries})


def in_arms(study: Study, tables: Mapping[str, Table]) -> Table:
    """One table of a study's arms, or of one of them, that `arm` tells apart."""
    return replace(joined(tables, ARM), digest=study.digest)


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
    frame = _filled_in(header, rows, labels_on_paper(study, design))
    if frame.empty:
        raise InputError(f"{lead}no record is filled in", code="paper.no_records")
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
        labels = {field.id: field.choices for field in study.public}
        found = survey_of(frame, Design(own, None, {}), used, blanks, study.digest, labels)
    except InputError as error:
        raise InputError(f"{lead}{error}", code="paper.entries_invalid") from None
    return replace(found, bounds=bounds_of(field for field in study.public if field.id in used))


def labels_on_paper(study: Study, design: Design | None) -> Labels:
    """What may stand in a sheet's columns: the labels of public fields, and reports as the dice have them."""
    assert study.paper is not None
    own = {field.id: field.choices for field in study.public}
    asked = {question.id: question.reports for question in study.paper.questions}
    return {**own, **asked, **({one.name: one.reports for one in design.columns} if design else {})}


def _filled_in(header: Sequence[str], rows: Sequence[Sequence[str]], labels: Labels) -> pd.DataFrame:
    """The records in which more stands than a number and a sheet, blank cells as None."""
    kept = [spelt_as_blanks(labels.get(name, ())) for name in header]
    cells = [[cell_of(cell, own) for cell, own in zip(row, kept, strict=True)] for row in rows]
    places = {header.index(name) for name in (RECORD, SHEET)}
    filled = [row for row in cells if any(cell for at, cell in enumerate(row) if at not in places)]
    return pd.DataFrame(filled, columns=list(header), dtype=object)


def refuse_copied(entries: Mapping[str, tuple[Study, str, Design | None]]) -> None:
    """Raises InputError where records of one wave were entered as another's too.

    entries: {wave: (study, path, its design)}, of files that were read without a fault. Dice fall anew in
    each wave: even where the same people have the same numbers, few of many would say the same in all.
    """
    read = {
        wave: (study, _filled_in(*read_rows(path), labels_on_paper(study, design)))
        for wave, (study, path, design) in entries.items()
    }
    for (name, (study, one)), (other_name, (other_study, other)) in combinations(read.items(), 2):
        asked = _asked_alike(study, other_study)
        first, second = (
            each[[RECORD, *asked]].assign(**{RECORD: each[RECORD].map(_numbered)}) for each in (one, other)
        )
        both = first.merge(second, on=RECORD, suffixes=("", "\0"))
        cells = both.drop(columns=RECORD).to_numpy(object)
        pairs = [(row[: len(asked)], row[len(asked) :]) for row in cells]
        filled = [(here, there) for here, there in pairs if any(here) and any(there)]
        alike = [here for here, there in filled if list(here) == list(there)]
        by_dice = max((_again(here, list(asked.values())) for here in alike), default=0.0)
        chance = float(stats.binom.sf(len(alike) - 1, len(filled), by_dice))
        if one.equals(other) or (len(alike) >= COPIED * len(filled) > 0 and chance < BY_CHANCE):
            raise InputError(
                f"waves {name} and {other_name} have the same records on paper: {len(alike):,} of the "
                f"{len(filled):,} numbers in both say the same, and dice would not fall so again: give each "
                "wave its own records, once",
                code="paper.same_records_in_waves",
            )


def _asked_alike(one: Study, other: Study) -> dict[str, float]:
    """The questions on paper in both, and how often at most two records of each say the same."""
    assert one.paper is not None
    assert other.paper is not None
    known = {question.id: question for question in other.paper.questions}
    found = {}
    for question in one.paper.questions:
        if question.id in known:
            here, there = chances_of(question), chances_of(known[question.id])
            common = [report for report in here if report in there]
            same = sum(np.multiply.outer(here[report], there[report]) for report in common)
            found[question.id] = float(np.max(same, initial=0.0))
    return found


def chances_of(question: PaperQuestion) -> dict[str, list[float]]:
    """A question's dice: {report: its probability under each answer}."""
    return {
        report: [row[place].numerator / row[place].denominator for row in question.matrix]
        for place, report in enumerate(question.reports)
    }


def _again(said: Sequence[str | None], chances: Sequence[float]) -> float:
    """How often at most another record says the same, of the questions that this one answers."""
    return float(np.prod([chance for one, chance in zip(said, chances, strict=True) if one is not None]))


def _check_records(frame: pd.DataFrame, sheet: str, lead: str) -> None:
    """Raises InputError for a record of other dice, without a number, or that was entered twice."""
    column = frame[RECORD]
    for record, name in zip(column, frame[SHEET], strict=True):
        if name != sheet:
            raise InputError(
                f"{lead}record {record}: its {SHEET} is {name or 'blank'}, and this study's is {sheet}: fit "
                "it with the study whose dice were used (`ldpkit paper` writes its sheets)",
                code="paper.other_sheet",
            )
    if column.isna().any():
        raise InputError(
            f"{lead}a record has no number in {RECORD}: number all of them",
            code="paper.record_without_number",
        )
    seen: dict[str, str] = {}
    for record in column:
        number = _numbered(record)
        if number in seen:
            also = "" if seen[number] == record else f", as {seen[number]} too"
            raise InputError(
                f"{lead}record {record} was entered twice{also}: keep one of the two",
                code="paper.duplicate_record",
            )
        seen[number] = record


def _numbered(record: str) -> str:
    """A paper's number however it was written: 01 is 1, 7.0, of a column with a blank, is 7, and a7 is A7."""
    if whole := WHOLE.fullmatch(record):
        return whole[1]
    return " ".join(record.casefold().split())


def _public(frame: pd.DataFrame, field: PublicField, lead: str) -> pd.Series:
    """A public field's values as the study lists them, blank ones missing."""
    values: list[str | None] = []
    for record, cell in zip(frame[RECORD], frame[field.id], strict=True):
        try:
            values.append(None if cell is None else field.value_of(cell))
        except AnswerError as error:
            raise InputError(
                f"{lead}record {record}: {field.id} {error.problem}", code="paper.public_value_invalid"
            ) from None
    if field.choices:
        return pd.Series(pd.Categorical(values, categories=list(field.choices)))
    return pd.Series([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def _design_of(one: PaperQuestion) -> ColumnDesign:
    rows = [tuple(Fraction(chance.numerator, chance.denominator) for chance in row) for row in one.matrix]
    return ColumnDesign(one.id, one.answers, one.reports, (Part({}, Channel(tuple(rows)), WORDS),))
