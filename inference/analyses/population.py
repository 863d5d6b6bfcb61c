"""Turn coefficients into shares of people: by group, weighted, or over a census. This costs no privacy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.cells import distinct_rows, refuse_blanks
from inference.analyses.census import in_kind_of, labels_of, levels_among, mostly_beyond, uncounted, unseen
from inference.analyses.effects import pairs_of, safe, shown
from inference.analyses.formula import known_column
from inference.analyses.marks import ALIKE, refuse_alike
from inference.analyses.matrices import again
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.public_columns import as_taken
from inference.analyses.result import Draws
from inference.analyses.table import WAVE, Table, Values
from inference.analyses.varying import levels_of
from inference.analyses.weights import positive
from inference.models.base import Draws as Sites
from inference.results.diagnostics import listed
from inference.results.quantity import Quantity
from ldp_client.documents.errors import InputError

# The census column with the number of people in each row; PEOPLE if the formula names a column `count`.
COUNT, PEOPLE = "count", "people"
People = tuple[pd.DataFrame, Values]
MOST_LEVELS = 200
WEIGHED = "weighted shares are right only if the formula names the columns that the weights depend on"
DRAWN_ONE_BY_ONE = (
    "intervals assume independently sampled people: they ignore clusters and strata. For such samples use "
    "a package for surveys, such as R's survey, on the columns unbiased.… of `ldpkit export --decoded`"
)


@dataclass(frozen=True)
class Population:
    """The people over whom shares are averaged.

    by: a public column of the formula; shares are shown for each of its levels. weights: a table's column
    with the number of people that each row represents. census: a frame (pandas, Polars or Arrow) of the
    formula's public columns, with the number of people in each row in `count` (`people` if the formula names
    `count`).
    """

    by: str | None = None
    weights: str | None = None
    census: Any = None

    def columns(self) -> list[str]:
        """Return the table's columns that are needed besides the formula's."""
        by = self.by if self.census is None else None
        return [name for name in dict.fromkeys([by, self.weights]) if name is not None]

    @property
    def weighted(self) -> bool:
        """Return True if some rows represent more people than others."""
        return self.weights is not None

    def weights_of(self, table: Table) -> Values:
        """Return (rows,) the number of people that each row represents, by default one."""
        if self.weights is not None:
            return table.public[self.weights].to_numpy(np.float64)
        return np.ones(len(table.counts))

    def notes(self) -> tuple[str, ...]:
        """Return notes on intervals for people other than the respondents."""
        weighed = (WEIGHED,) if self.weighted else ()
        return (*weighed, DRAWN_ONE_BY_ONE) if self.weighted or self.census is not None else ()

    def checked(self, table: Table) -> Population:
        """Return self. Raises InputError for columns that are absent or not public, or invalid weights."""
        if self.census is not None and self.weights is not None:
            raise InputError(
                "a census and weights exclude each other: give only one", code="census.with_weights"
            )
        columns = self.columns()
        for name in (self.by, *columns):
            if name in table.private:
                raise InputError(
                    f"{name} is private: groups and weights must be public", code="weights.private_column"
                )
        for name in columns:
            known_column(name, [str(column) for column in table.public.columns])
            refuse_blanks(table.public[name], name)
        refuse_alike(table.alike, (self.by,))
        if self.weights is not None:
            positive(table.public[self.weights], self.weights)
        return self


def quantities_over(
    analysis: Assembled, sites: Sites, people: People, population: Population, seed: int = 0
) -> list[Quantity]:
    """Return shares or means over the population and by group, differences between groups, and totals."""
    frame, weights = people
    predicted = Predicted(analysis, sites, len(frame), seed)
    counted = population.census is not None
    how = "in the census" if counted else "weighted" if population.weighted else "among those asked"
    found = []
    if counted or population.weighted:
        whole = predicted.average(frame, weights)
        found += shown(analysis, how, whole, f"{{}} of all {how}")
        found += _totals(analysis, how, whole, weights) if counted else []
    if population.by is not None:
        found += _by(analysis, predicted, frame, weights, population, how)
    return found


def people_of(analysis: Assembled, table: Table, population: Population) -> People:
    """Return distinct rows of the relevant public columns, and the weight of each.

    Raises InputError if the formula cannot be evaluated over the census.
    """
    needed = [str(name) for name in analysis.cells.frame.columns]
    if population.by is not None:
        _refuse_unnamed(analysis, population.by, needed)
    if population.census is None:
        cell, frame = distinct_rows(table.public[needed])
        _refuse_many(frame, population.by)
        each = table.counts * population.weights_of(table)
        return frame, np.asarray(np.bincount(cell, each, len(frame)), np.float64)
    labels = labels_of(analysis.cells.frame)
    census = _as_frame(population.census)
    held = _held_in(needed, census)
    for name in [*needed, held]:
        known_column(name, [str(column) for column in census.columns], "the census: ")
        refuse_blanks(census[name], f"{name} of the census")
    refuse_alike(census.attrs.get(ALIKE, {}), levels_among(analysis, population.by), "the census: ")
    census = as_taken(census, [*needed, held], "the census: ", labels)
    counts = positive(census[held], f"{held} of the census", 0.0)
    if not counts.sum():
        raise InputError("the census counts no people", code="census.counts_nobody")
    alike = {name: in_kind_of(census[name], analysis.cells.frame[name], name) for name in needed}
    frame = census.assign(**alike).reset_index(drop=True)
    try:
        again(analysis.law.matrix, frame, analysis.predictors)
    except InputError as error:
        raise InputError(
            unseen(frame, analysis) or f"the census: {error}", code="census.rows_invalid"
        ) from None
    _refuse_many(frame, population.by)
    return frame, counts


def _as_frame(census: Any) -> pd.DataFrame:
    """Return a census as a pandas frame. Raises InputError if it is no frame."""
    found = census.to_pandas() if hasattr(census, "to_pandas") else census
    if not isinstance(found, pd.DataFrame):
        raise InputError(
            "the census must be a frame of pandas, Polars or Arrow: read its file first",
            code="census.not_frame",
        )
    return found


def _held_in(needed: Sequence[str], census: pd.DataFrame) -> str:
    """Return the census's column of people. Raises InputError if it is a column of the formula."""
    if COUNT not in needed:
        return COUNT
    if PEOPLE in needed or PEOPLE not in census.columns:
        raise InputError(
            f"the formula names {COUNT}, in a census the number of people in each row: write "
            f"these numbers into another column, {PEOPLE}, which the formula must not name",
            code="census.count_column_ambiguous",
        )
    return PEOPLE


def _refuse_unnamed(analysis: Assembled, by: str, needed: Sequence[str]) -> None:
    """Raise InputError if the law ignores the groups: it would find no difference."""
    if by == analysis.formula.outcome:
        raise InputError(
            f"--by {by}: {by} is the formula's outcome. Use a column on its right side",
            code="options.by_is_outcome",
        )
    if by not in needed:
        text = analysis.formula.text.strip()
        raise InputError(
            f"--by {by}: the formula does not name {by}, so its law allows no difference between its "
            f'levels. Write "{text} + {by}", or "{text} + (1 | {by})" if some are small',
            code="options.by_not_in_formula",
        )


def notes_over(analysis: Assembled, people: People, population: Population) -> tuple[str, ...]:
    """Return notes on census columns outside the formula, and on people in groups without reports."""
    frame, weights = people
    found = (
        [] if population.census is None else [*_left_out(analysis, frame), *_other_waves(analysis, people)]
    )
    known = {one.column: one.levels for one in analysis.every_group}
    for column, levels in known.items():
        codes, own = levels_of(frame[column])
        new = [level for level in own if level not in levels]
        many = weights[np.isin(codes, [own.index(level) for level in new])].sum()
        if many:
            found.append(
                f"{many:,.0f} of {weights.sum():,.0f} people are in groups of {column} without reports "
                f"({listed(new)}): they are drawn from the groups' law"
            )
    return tuple(found)


def _other_waves(analysis: Assembled, people: People) -> Iterator[str]:
    """Yield a note if a census covers only some waves. It then leaves no people out."""
    for name, said in uncounted(analysis, *people):
        if name == WAVE:
            yield f"{said}: shares and totals are for the other waves"


def left_out_of(analysis: Assembled, people: People, population: Population) -> tuple[str, ...]:
    """Return reasons why shares and totals in a census do not describe all respondents."""
    if population.census is None:
        return ()
    left_out = (
        f"{said}: shares and totals in the census exclude such people. Add their rows or, if they do not "
        "belong to it, remove their reports"
        for name, said in uncounted(analysis, *people)
        if name != WAVE
    )
    return (*left_out, *mostly_beyond(analysis, *people))


def _left_out(analysis: Assembled, census: pd.DataFrame) -> list[str]:
    """Return a note if people in a census differ in columns that the formula does not name."""
    named = [str(name) for name in analysis.cells.frame.columns]
    held = _held_in(named, census)
    others = [str(name) for name in census.columns if name not in named and name != held]
    others = [name for name in others if census[name].nunique(dropna=False) > 1]
    if not others:
        return []
    return [
        f"the census distinguishes people by {listed(others)}, but the formula does not: shares assume "
        "that this makes no difference. Add it to the formula if the reports have it"
    ]


def _refuse_many(frame: pd.DataFrame, by: str | None) -> None:
    levels = frame[by].nunique() if by is not None else 0
    if levels > MOST_LEVELS:
        raise InputError(
            f"--by {by}: it has {levels} values, but at most {MOST_LEVELS} are allowed",
            code="options.by_too_many_values",
        )


def _totals(
    analysis: Assembled, how: str, whole: Draws, weights: Values, level: str = ""
) -> Iterator[Quantity]:
    """Yield expected totals. level: of the column that distinguishes people, as "region = north"."""
    named, how = (f"{level}, {how}", f"of those with {level}, {how}") if level else (how, how)
    answers = analysis.outcome.answers
    of = analysis.formula.outcome
    for place in [1] if len(answers) == 2 else range(len(answers)):
        words = f"expected number of people with {of} = {answers[place]} {how}"
        yield Quantity(f"total {of} = {answers[place]}, {named}", words, whole[..., place] * weights.sum())
    if not answers:
        yield Quantity(f"total {of}, {named}", f"expected total of {of} {how}", whole[..., 0] * weights.sum())


def _by(
    analysis: Assembled,
    predicted: Predicted,
    frame: pd.DataFrame,
    weights: Values,
    population: Population,
    how: str,
) -> Iterator[Quantity]:
    by = population.by
    assert by is not None
    codes, levels = levels_of(frame[by])
    averages: Mapping[str, Draws] = {
        level: predicted.average(frame[codes == place], weights[codes == place])
        for place, level in enumerate(levels)
        if weights[codes == place].sum() > 0
    }
    for level, draws in averages.items():
        at = safe(f"{by} = {level}")
        yield from shown(analysis, f"{by} = {level}, {how}", draws, f"{{}} of those with {at}, {how}")
        if population.census is not None:
            own = weights[codes == levels.index(level)]
            yield from _totals(analysis, how, draws, own, f"{by} = {level}")
    for one, other in pairs_of(list(averages)):
        moved = averages[other] - averages[one]
        what = f"{by}: {other} − {one}, {how}"
        yield from shown(analysis, what, moved, f"difference of {{}}, {safe(what)}", contrast=True)
