"""Turn coefficients into shares of people: by group, weighted, or over a census. This costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.formula import known_column
from inference.analyses.matrices import again
from inference.analyses.predicted import Predicted, by_answer, compared, shown
from inference.analyses.program import Assembled
from inference.analyses.public_columns import COUNT, as_taken, is_number, positive, refuse_blanks
from inference.analyses.table import WAVE, Table, Values, distinct_rows, level_text
from inference.analyses.varying import levels_of
from inference.models.base import Draws as Sites
from inference.results.quantity import Draws, Quantity
from inference.results.verdict import listed
from ldp_client.documents.errors import InputError

People = tuple[pd.DataFrame, Values]
MOST_LEVELS = 200
WEIGHED = "weighted shares are right only if the formula names the columns that the weights depend on"
DRAWN_ONE_BY_ONE = (
    "intervals assume independently sampled people: they ignore clusters and strata. For such samples use "
    "a package for surveys, such as R's survey, on the columns unbiased.… of `ldpkit export --out TABLE.csv`"
)


@dataclass(frozen=True)
class Population:
    """The people over whom shares are averaged.

    by: a public column of the formula; shares are shown for each of its levels. weights: a table's column
    with the number of people that each row represents. census: a frame (pandas, Polars or Arrow) of the
    formula's public columns, and `count`, the number of people in each row.
    """

    by: str | None = None
    weights: str | None = None
    census: Any = None

    def columns(self) -> list[str]:
        """Return the table's columns that are needed besides the formula's."""
        by = self.by if self.census is None else None
        return [name for name in dict.fromkeys([by, self.weights]) if name is not None]

    def notes(self) -> tuple[str, ...]:
        """Return notes on intervals for people other than the respondents."""
        weighed = (WEIGHED,) if self.weights is not None else ()
        return (*weighed, DRAWN_ONE_BY_ONE) if weighed or self.census is not None else ()


def quantities_over(
    analysis: Assembled, sites: Sites, people: People, population: Population, seed: int = 0
) -> list[Quantity]:
    """Return shares or means over the population and by group, differences between groups, and totals."""
    frame, weights = people
    predicted = Predicted(analysis, sites, len(frame), seed)
    counted = population.census is not None
    weighted = population.weights is not None
    how = "in the census" if counted else "weighted" if weighted else "among those asked"
    found = []
    if counted or weighted:
        whole = predicted.average(frame, weights)
        found += shown(analysis, how, whole, "", f" of all {how}")
        found += _totals(analysis, how, whole, weights) if counted else []
    if population.by is None:
        return found
    by, (codes, levels) = population.by, levels_of(frame[population.by])
    sizes = {level: weights * (codes == place) for place, level in enumerate(levels)}
    averages = {
        level: predicted.average(frame[own > 0], own[own > 0]) for level, own in sizes.items() if own.any()
    }
    found += compared(analysis, by, averages, " of those with ", "difference of ", f", {how}")
    for level, draws in averages.items() if counted else ():
        found += _totals(analysis, how, draws, sizes[level], f"{by} = {level}")
    return found


def people_of(analysis: Assembled, table: Table, population: Population) -> People:
    """Return distinct rows of the relevant public columns, and the weight of each.

    Raises InputError for columns that are absent or not public, for invalid weights, if the law ignores the
    groups, and if the census does not go with the formula.
    """
    # 1. The columns of the table.
    if population.census is not None and population.weights is not None:
        raise InputError("a census and weights exclude each other: give only one", code="census.with_weights")
    for name in (population.by, population.weights):
        if name in table.private:
            raise InputError(
                f"{name} is private: groups and weights must be public", code="weights.private_column"
            )
    for name in population.columns():
        known_column(name, [str(column) for column in table.public.columns])
    needed, by = [str(name) for name in analysis.table.frame.columns], population.by
    if by is not None and by not in needed:
        text = analysis.formula.text.strip()
        raise InputError(
            f"--by {by}: the formula's right side does not name {by}, so its law allows no difference "
            f'between its levels. Use a column that it names, or write "{text} + {by}", or '
            f'"{text} + (1 | {by})" if some levels are small',
            code="options.by_not_in_formula",
        )
    # 2. The people.
    frame, counts = analysis.table.frame, analysis.table.sizes.astype(np.float64)
    if population.weights is not None:
        weights = table.counts * positive(table.public[population.weights], population.weights)
        counts = np.bincount(distinct_rows(table.public[needed])[0], weights).astype(np.float64)
    if population.census is not None:
        frame, counts = _census(analysis, population.census, needed)
    if by is not None and frame[by].nunique() > MOST_LEVELS:
        raise InputError(
            f"--by {by}: it has {frame[by].nunique()} values, but at most {MOST_LEVELS} are allowed",
            code="options.by_too_many_values",
        )
    return frame, counts


def _census(analysis: Assembled, census: Any, needed: list[str]) -> People:
    """Return a census's columns as the reports have them, and the people of each row."""
    census = census.to_pandas() if hasattr(census, "to_pandas") else census
    if not isinstance(census, pd.DataFrame):
        raise InputError(
            "the census must be a frame of pandas, Polars or Arrow: read its file first",
            code="census.not_frame",
        )
    if COUNT in needed:
        raise InputError(
            f"the formula names {COUNT}, in a census the number of people in each row: rename the column",
            code="census.count_column_ambiguous",
        )
    for name in [*needed, COUNT]:
        known_column(name, [str(column) for column in census.columns], "the census: ")
        refuse_blanks(census[name], f"{name} of the census")
    census = as_taken(census, [*needed, COUNT], "the census: ")
    counts = positive(census[COUNT], f"{COUNT} of the census", 0.0)
    if not counts.sum():
        raise InputError("the census counts no people", code="census.counts_nobody")
    grouped = {group.column for group in analysis.every_group}
    columns = {
        name: _matched(census[name], analysis.table.frame[name], name, name in grouped) for name in needed
    }
    frame = pd.DataFrame(columns).reset_index(drop=True)
    again(analysis.law.matrix, frame, analysis.predictors)
    return frame, counts


def _matched(census: pd.Series, reported: pd.Series, name: str, grouped: bool) -> pd.Series:
    """Return a census column in the kind of the reports' column. Only groups may have levels of their own.

    Raises InputError that lists levels without a match.
    """
    if is_number(reported):
        if not pd.api.types.is_numeric_dtype(census):
            raise InputError(
                f"the census: {name} must hold numbers, as it does in the reports", code="census.not_numbers"
            )
        return census
    listed_ones = isinstance(reported.dtype, pd.CategoricalDtype)
    levels = list(reported.cat.categories) if listed_ones else list(reported.unique())
    known, texts = {level_text(level): level for level in levels}, census.map(level_text).astype(object)
    new = sorted(set(texts) - set(known))
    if new and (listed_ones or not grouped):
        raise InputError(
            f"the census: {name} has {listed([repr(one) for one in new])}, levels without reports. Remove "
            f"those people, or write (1 | {name}) instead of {name}: it draws these levels from the "
            "groups' law",
            code="census.unknown_value",
        )
    return texts.map(lambda text: known.get(text, text)).astype(reported.dtype)


def notes_over(analysis: Assembled, people: People) -> tuple[str, ...]:
    """Return notes on people in groups without reports."""
    frame, weights = people
    found = []
    for group in analysis.every_group:
        codes, own = levels_of(frame[group.column])
        new = [level for level in own if level not in group.levels]
        many = weights[np.isin(codes, [own.index(level) for level in new])].sum()
        if many:
            found.append(
                f"{many:,.0f} of {weights.sum():,.0f} people are in groups of {group.column} without reports "
                f"({listed(new)}): they are drawn from the groups' law"
            )
    return tuple(dict.fromkeys(found))


def left_out_of(analysis: Assembled, people: People, population: Population) -> tuple[str, ...]:
    """Return reasons why shares in a census do not describe all respondents, or extrapolate.

    A census may cover some waves alone.
    """
    if population.census is None:
        return ()
    (census, counts), sizes, found = people, analysis.table.sizes, []
    grouped = {group.column for group in analysis.every_group}
    for name, column in analysis.table.frame.items():
        if is_number(column) and name not in grouped:
            low, high = float(column.min()), float(column.max())
            beyond = float(counts[~census[name].between(low, high).to_numpy()].sum())
            if beyond > counts.sum() / 2:
                found.append(
                    f"{beyond:,.0f} of {counts.sum():,.0f} people of the census have {name} beyond all "
                    f"reports ({low:g} to {high:g}): their estimates extrapolate the formula"
                )
        elif name != WAVE:
            levels = column.map(level_text).astype(object)
            gone = ~levels.isin(census[name][counts > 0].map(level_text).unique()).to_numpy()
            if sizes[gone].any():
                found.append(
                    f"{int(sizes[gone].sum()):,} of {int(sizes.sum()):,} reports have "
                    f"{name} = {listed(list(dict.fromkeys(levels[gone])))}, which the census does not count: "
                    "shares and totals in the census exclude such people. Add their rows or, if they do not "
                    "belong to it, remove their reports"
                )
    return tuple(found)


def _totals(
    analysis: Assembled, how: str, whole: Draws, weights: Values, level: str = ""
) -> Iterator[Quantity]:
    """Yield expected totals. level: of the column that distinguishes people, as "region = north"."""
    named, how = (f"{level}, {how}", f"of those with {level}, {how}") if level else (how, how)
    kind = "number of people with" if analysis.outcome.answers else "total of"
    for of, draws in by_answer(analysis, whole):
        yield Quantity(f"total {of}, {named}", f"expected {kind} {of} {how}", draws * weights.sum())
