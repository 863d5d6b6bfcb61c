"""The people that a plan of a formula is about, and their private outcome. Loads no JAX.

People are distinct rows of public columns, with their shares. The outcome has a law of answers, and
probabilities of reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from inference.analyses.design_file import ColumnDesign
from inference.analyses.formula import known_column, named
from inference.analyses.public_columns import COUNT, as_taken, positive, refuse_blanks
from inference.analyses.survey import groups_of_rows
from inference.analyses.table import distinct_rows, level_text
from inference.design.information import masses, number_channel
from inference.design.shares import law_of_reports
from inference.results.verdict import listed
from inference.units import number_units
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.documents.public import PublicField
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question

Vector = NDArray[np.float64]

# A public number without a table is taken at so many places of its range, or fewer with other numbers.
PLACES, FEWER_PLACES = 25, 7
# Places for a private number's answers between its bounds.
ANSWERS = 257


@dataclass(frozen=True)
class People:
    """frame: distinct rows of public columns. shares: (rows,) of all people. words: where they are from."""

    frame: pd.DataFrame
    shares: NDArray[np.float64]
    words: str


def people_in(known: pd.DataFrame, names: Sequence[str], fields: Mapping[str, PublicField]) -> People:
    """Return distinct rows of these columns of a table; a column `count` is each row's number of people.

    fields: of a study, whose values they must have. Raises InputError.
    """
    where = "the table of people"
    columns = [str(name) for name in known.columns]
    weights = np.ones(len(known))
    for name in names:
        known_column(name, columns, f"{where}: ")
        refuse_blanks(known[name], f"{name} of {where}")
    known = as_taken(known, names, f"{where}: ")
    if COUNT in columns and COUNT not in names:
        refuse_blanks(known[COUNT], f"{COUNT} of {where}")
        weights = positive(as_taken(known, [COUNT], f"{where}: ")[COUNT], f"{COUNT} of {where}", 0.0)
    known, weights = known[weights > 0], weights[weights > 0]
    if not len(known):
        raise InputError(f"{where} is empty", code="plan.table_without_people")
    for name, field in ((name, fields[name]) for name in names if name in fields):
        texts = known[name].map(level_text)
        numbers = not field.choices and pd.api.types.is_numeric_dtype(known[name])
        good = texts.isin(field.choices)
        if numbers:
            good = known[name].between(float(field.value(0)), float(field.value(field.size - 1)))
        if not good.all():
            raise InputError(
                f"{where}: {name} has {texts[~good].iloc[0]!r}, which the study does not have",
                code="plan.unknown_public_value",
            )
        if field.choices:
            known = known.assign(**{name: pd.Categorical(texts, categories=list(field.choices))})
    codes, frame = distinct_rows(known[list(names)])
    shares = np.bincount(codes, weights) / weights.sum()
    return People(frame, shares, f"{', '.join(names) or 'people'}: as in {where}, {weights.sum():,.0f}")


def uniform_people(fields: Sequence[PublicField]) -> People:
    """Return all combinations of public fields, equally likely, with numbers at a few places."""
    places = PLACES if sum(not field.choices for field in fields) < 2 else FEWER_PLACES
    values: list[Sequence[Any]] = []
    for field in fields:
        if field.choices:
            values.append(field.choices)
        else:
            # The middles of equal parts of the range, whose ends are half a step beyond the values.
            low, high = float(field.value(0)), float(field.value(field.size - 1))
            half = (high - low) / (field.size - 1) / 2
            ends = np.linspace(low - half, high + half, min(field.size, places) + 1)
            values.append(((ends[1:] + ends[:-1]) / 2).tolist())
    rows = list(product(*values))
    frame = pd.DataFrame(index=range(len(rows)))
    for place, field in enumerate(fields):
        column = [row[place] for row in rows]
        frame[field.id] = pd.Categorical(column, categories=list(field.choices)) if field.choices else column
    names = listed([field.id for field in fields]) if fields else "people"
    words = f"{names}: all values equally likely (a --table of people says who they are)"
    return People(frame, np.full(len(rows), 1 / len(rows)), words)


@dataclass(frozen=True)
class Outcome:
    """A private outcome as it is reported.

    answers: of a choice, () for a number. channel: P(report | answer), (answers, reports), or one for each
    cell. units: a number's lower bound, and the distance of its bounds.
    """

    name: str
    answers: tuple[str, ...]
    channel: Vector
    ordered: bool = False
    units: tuple[float, float] = (0.0, 1.0)

    @property
    def own(self) -> tuple[str, ...]:
        """Return the parameters of the law that are no linear predictor's: cutpoints, or an sd."""
        if not self.answers:
            return ("sigma",)
        return tuple(named("threshold", one) for one in self.answers[:-1]) if self.ordered else ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the labels of the linear predictors: several choices have one for each but the first."""
        return self.answers[1:] if len(self.answers) > 2 and not self.ordered else ("",)

    def law(self, arguments: Vector) -> Vector:
        """Return P(answer) (cells, answers) from linear predictors and own parameters (cells, arguments)."""
        if not self.answers:
            mean, sd = arguments.T[:, :, None]
            low, width = self.units
            return masses(lambda x: ndtr((x - mean) / sd), np.linspace(low, low + width, ANSWERS))
        if self.ordered:
            below = expit(arguments[:, 1:] - arguments[:, :1])
            ends = np.zeros((len(below), 1))
            return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)
        eta = np.concatenate([np.zeros((len(arguments), 1)), arguments], axis=1)
        weights = np.exp(eta - eta.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def outcome_of(asked: Question | ColumnDesign, people: People) -> Outcome:
    """Return the outcome of a question, or of a survey done with dice.

    Raises InputError for reports that are too many or of other kinds, and for unknown shares of people.
    """
    if isinstance(asked, ColumnDesign):
        if any(part.channel.weights for part in asked.parts):
            raise InputError(
                f'{asked.name}: a plan needs a number for each share of people in the design, not "unknown"',
                code="plan.unknown_share_of_people",
            )
        channels = np.stack([part.channel.chances[0, 0] for part in asked.parts])
        rows = groups_of_rows(people.frame, asked)
        return Outcome(asked.name, asked.answers, channels[rows], asked.ordered)
    mechanism = mechanism_for(asked)
    if isinstance(mechanism, NumberMechanism):
        low, width = number_units(asked)
        channel = number_channel(asked, np.linspace(low, low + width, ANSWERS))
        return Outcome(asked.id, (), channel, units=(low, width))
    law = law_of_reports(mechanism) if isinstance(mechanism, ChoiceMechanism) else None
    if law is None or not isinstance(mechanism, ChoiceMechanism):
        raise InputError(
            f"{asked.id}: a plan of a formula takes yes or no, not too many choices, and numbers under "
            f"laplace or gaussian noise, but this is a {asked.ask} under {mechanism.name}",
            code="plan.outcome_not_plannable",
        )
    answers = ["(refused)" if label is None else str(label) for label in mechanism.labels]
    return Outcome(asked.id, tuple(answers), law.T, bool(asked.ordered and not asked.refusal))
