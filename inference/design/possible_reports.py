"""Every possible report, in every public cell: the table over which an expectation is a sum.

Each row is one combination of public values and reports, and has the people of its cell. Applied to such a
table, an analysis gives the probability of every possible observation, without a random draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.channel import Channel
from inference.analyses.design_file import Design
from inference.analyses.formula import known_column, parse
from inference.analyses.matrices import columns_of
from inference.analyses.population import COUNT
from inference.analyses.private_numbers import possible_numbers
from inference.analyses.public_columns import as_taken
from inference.analyses.reports import (
    check_analysable,
    choice_mechanism,
    columns_in,
    is_scale,
    names_of_answers,
)
from inference.analyses.survey import REFUSE, survey_of
from inference.analyses.table import Private, Table, Values, table_of
from inference.analyses.varying import level_text
from inference.design.information import law_of_reports
from inference.design.people import as_the_study_says, people_of_table, uniform_people
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.documents.public import PublicField
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question, Study
from summaries import check_study

# Rows of public values and reports that are summed over.
MOST_ROWS = 300_000
# For a public outcome.
MOST_LEVELS = 100


@dataclass(frozen=True)
class Possible:
    """All possible reports.

    table: a row for each, whose counts are shares of people. rows: how many of them each person has. steps:
    {private number: (distinct,) the width of numbers that each report covers, as its probability is a
    density}. words: assumptions about the public columns. questions: among how many each person answers one.
    """

    table: Table
    rows: int
    steps: Mapping[str, Values] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    questions: int = 1


def possible_of_study(study: Study, formula: str, known: pd.DataFrame | None) -> Possible:
    """Return all possible reports of a study's devices.

    known: a table of people with its public fields, None to take all values as equally likely. Raises
    InputError for studies that cannot be analysed, and for too many reports to sum over.
    """
    check_study(study)
    names = columns_in([study], formula)
    outcome = parse(formula, names).outcome
    asked = [question for question in study.questions if question.id in names]
    for question in asked:
        check_analysable(question)
    if study.sample_one_question and len(asked) > 1:
        raise InputError(
            f"each person answers one question of this study: no report would have both {asked[0].id} and "
            f"{asked[1].id}, so nothing would tell how they hang together",
            code="plan.one_question_a_person",
        )
    reports = [_possible_reports(question) for question in asked]
    many = int(np.prod([len(one.codes) for one, _ in reports], dtype=np.int64))
    fields = [one for one in study.public if one.id in names and one.id != outcome]
    if known is None:
        people = uniform_people(fields, MOST_ROWS // many)
    else:
        people = as_the_study_says(people_of_table(known, [one.id for one in fields]), fields)
    told = [one for one in study.public if one.id == outcome]
    for one in told:
        people = people.with_levels(one.id, _levels_of(one))
    _refuse_many(len(people.frame) * many)
    codes = np.asarray(list(product(*(range(len(one.codes)) for one, _ in reports))), np.int64)
    codes = np.tile(codes.reshape(many, len(reports)), (len(people.frame), 1))
    private = [replace(one, codes=codes[:, place]) for place, (one, _) in enumerate(reports)]
    table = replace(table_of(_each(people.frame, many), private), counts=np.repeat(people.shares, many))
    steps = {one.name: step for one, step in reports if step is not None}
    rows = many * int(np.prod([len(_levels_of(one)) for one in told], dtype=np.int64))
    return Possible(
        table, rows, steps, people.words, len(study.questions) if study.sample_one_question else 1
    )


def possible_of_design(design: Design, formula: str, known: pd.DataFrame) -> Possible:
    """Return all possible reports of people under a design. known: the people's public columns."""
    own = {one.name: one for one in design.columns}
    columns = [str(name) for name in known.columns if name not in own and name != COUNT]
    names = columns_of(formula, [*own, *columns])
    outcome = parse(formula, names).outcome
    used = [own[name] for name in names if name in own]
    grouping = {column for one in used for part in one.parts for column in part.rows}
    for name in grouping:
        known_column(name, columns, "the design's rows: ")
    public = [one for one in columns if one != outcome and one in {*names, *grouping}]
    people = people_of_table(known, public)
    rows = 1
    if outcome not in own:
        told = as_taken(known, [outcome], "the table of people: ")
        levels = _levels_in(told[outcome], outcome)
        people, rows = people.with_levels(outcome, levels), len(levels)
    labels = list(product(*(one.reports for one in used)))
    _refuse_many(len(people.frame) * len(labels))
    frame = _each(people.frame, len(labels))
    for place, one in enumerate(used):
        frame[one.name] = [label[place] for label in labels] * len(people.frame)
    table = survey_of(frame, replace(design, columns=tuple(used)), names, REFUSE)
    table = replace(table, counts=np.repeat(people.shares, len(labels)))
    return Possible(table, rows * len(labels), {}, people.words)


def _each(frame: pd.DataFrame, times: int) -> pd.DataFrame:
    return frame.loc[np.repeat(np.arange(len(frame)), times)].reset_index(drop=True)


def _refuse_many(rows: int) -> None:
    if rows > MOST_ROWS:
        raise InputError(
            f"{rows:,} combinations of public values and reports are too many to sum over ({MOST_ROWS:,} at "
            "most): name fewer columns, or give a --table of people with coarser ones",
            code="plan.too_many_rows",
        )


def _possible_reports(question: Question) -> tuple[Private, Values | None]:
    """Return all reports of a question, with their probabilities; for a number also their steps."""
    if isinstance(mechanism_for(question), NumberMechanism):
        return possible_numbers(question)
    mechanism = choice_mechanism(question)
    law = law_of_reports(mechanism)
    if law is None:
        raise InputError(
            f"{question.id}: the reports that {mechanism.name} may send of {mechanism.choices} choices are "
            "too many to sum over: plan with fewer choices, or under randomized_response or hadamard",
            code="plan.too_many_reports_of_mechanism",
        )
    channel = Channel.of(law.T)
    codes = np.arange(len(law))
    return Private(question.id, names_of_answers(mechanism), codes, channel, is_scale(question)), None


def _levels_of(one: PublicField) -> Sequence[Any]:
    """Return the values of a public outcome. Raises InputError for a number, except no and yes as 0 and 1."""
    if one.choices:
        return one.choices
    if one.size == 2 and [one.value(0), one.value(1)] == ["0", "1"]:
        return ["0", "1"]
    raise InputError(_public_number(one.id), code="plan.public_number")


def _levels_in(column: pd.Series, name: str) -> Sequence[Any]:
    values = sorted(column.dropna().unique().tolist(), key=str)
    if pd.api.types.is_numeric_dtype(column) and not set(values) <= {0, 1}:
        raise InputError(_public_number(name), code="plan.public_number")
    if not 2 <= len(values) <= MOST_LEVELS:
        raise InputError(
            f"{name} has {len(values)} different values: an outcome of choices has 2 to {MOST_LEVELS}",
            code="plan.wrong_level_count",
        )
    return [level_text(value) for value in values]


def _public_number(name: str) -> str:
    return f"{name} is a public number: a plan takes a private outcome, or a public choice"
