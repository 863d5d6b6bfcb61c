"""From coefficients to people: shares by group, weighted, or over a census; none of it costs privacy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.blanks import as_listed
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
from inference.analyses.table import Table, Values
from inference.analyses.varying import levels_of
from inference.analyses.weights import positive
from inference.models.base import Draws as Sites
from inference.results.diagnostics import listed
from inference.results.quantity import Quantity
from ldp_client.commands.study_warnings import WAVE
from ldp_client.documents.errors import InputError

# Of a census, how many people a row stands for; where the formula names a column `count`, the other one.
COUNT, PEOPLE = "count", "people"
People = tuple[pd.DataFrame, Values]
MOST_LEVELS = 200
WEIGHED = "weighted shares are right only where the formula names what the weights depend on"
DRAWN_ONE_BY_ONE = (
    "intervals take people as drawn one by one: they ignore clusters and strata of the sample; for these use "
    "a package for surveys, such as R's survey, on the columns unbiased.… of `ldpkit export --decoded`"
)


@dataclass(frozen=True)
class Population:
    """Over whom shares are averaged.

    by: a public column of the formula, for each of whose levels they are. weights: one of the table: how many
    people a row stands for. census: a frame (pandas, Polars or Arrow) of the formula's public columns with
    how many people each row stands for, in `count` (`people` where the formula names `count`).
    """

    by: str | None = None
    weights: str | None = None
    census: Any = None

    def columns(self) -> list[str]:
        """The table's columns that it reads, besides the formula's."""
        by = self.by if self.census is None else None
        return [name for name in dict.fromkeys([by, self.weights]) if name is not None]

    @property
    def weighted(self) -> bool:
        """Whether some rows stand for more people than others."""
        return self.weights is not None

    def weights_of(self, table: Table) -> Values:
        """(rows,) how many people each row stands for; ones where nothing says so."""
        if self.weights is not None:
            return table.public[self.weights].to_numpy(np.float64)
        return np.ones(len(table.counts))

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of intervals over other people than those who were asked."""
        weighed = (WEIGHED,) if self.weighted else ()
        return (*weighed, DRAWN_ONE_BY_ONE) if self.weighted or self.census is not None else ()

    def checked(self, table: Table) -> Population:
        """Itself; raises InputError for columns that are absent or not public, or weights that are none."""
        if self.census is not None and self.weights is not None:
            raise InputError(
                "a census and weights both say for whom they stand: give one", code="census.with_weights"
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
    """Shares, or means, over the population and by its groups, differences between groups, and totals."""
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
    """Distinct rows of the public columns that matter, and the weight of each.

    Raises InputError for a census that the formula cannot be read over.
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
    census = as_listed(_as_frame(population.census), labels, [ALIKE])
    held = _held_in(needed, census)
    for name in [*needed, held]:
        known_column(name, [str(column) for column in census.columns], "the census: ")
        refuse_blanks(census[name], f"{name} of the census", labels.get(name, ()))
    refuse_alike(census.attrs.get(ALIKE, {}), levels_among(analysis, population.by), "the census: ")
    census = as_taken(census, [*needed, held], "the census: ", labels)
    counts = positive(census[held], f"{held} of the census", 0.0)
    if not counts.sum():
        raise InputError("the census counts nobody", code="census.counts_nobody")
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
    """A census as pandas has it. Raises InputError for what is no frame."""
    found = census.to_pandas() if hasattr(census, "to_pandas") else census
    if not isinstance(found, pd.DataFrame):
        raise InputError(
            "the census must be a frame of pandas, Polars or Arrow: read its file first",
            code="census.not_frame",
        )
    return found


def _held_in(needed: Sequence[str], census: pd.DataFrame) -> str:
    """The census's column of people. Raises InputError where that is a column of the formula."""
    if COUNT not in needed:
        return COUNT
    if PEOPLE in needed or PEOPLE not in census.columns:
        raise InputError(
            f"the formula names {COUNT}, which in a census is how many people a row stands for: write "
            f"these into a column {PEOPLE}, of which the formula has none",
            code="census.count_column_ambiguous",
        )
    return PEOPLE


def _refuse_unnamed(analysis: Assembled, by: str, needed: Sequence[str]) -> None:
    """Raises InputError where the law does not know the groups: it would find no difference."""
    if by == analysis.formula.outcome:
        raise InputError(
            f"--by {by}: the formula explains {by}; groups are of a column on its right side",
            code="options.by_is_outcome",
        )
    if by not in needed:
        text = analysis.formula.text.strip()
        raise InputError(
            f"--by {by}: the formula does not name {by}, so that its law would find no difference, whatever "
            f'came; write "{text} + {by}", or "{text} + (1 | {by})" where some are small',
            code="options.by_not_in_formula",
        )


def notes_over(analysis: Assembled, people: People, population: Population) -> tuple[str, ...]:
    """What a census tells that the formula leaves out, and how many are in groups that no report had."""
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
                f"{many:,.0f} of {weights.sum():,.0f} people are in groups of {column} that no report had "
                f"({listed(new)}): they are drawn from the groups' law"
            )
    return tuple(found)


def _other_waves(analysis: Assembled, people: People) -> Iterator[str]:
    """A note where a census is of some waves alone: then nobody is left out of it."""
    for name, said in uncounted(analysis, *people):
        if name == WAVE:
            yield f"{said}: its shares and totals are as others were asked"


def left_out_of(analysis: Assembled, people: People, population: Population) -> tuple[str, ...]:
    """Reasons not to take shares and totals in a census for those of all who were asked."""
    if population.census is None:
        return ()
    left_out = (
        f"{said}: shares and totals in the census leave such people out; add their rows, or, where it is of "
        "others alone, leave these reports out"
        for name, said in uncounted(analysis, *people)
        if name != WAVE
    )
    return (*left_out, *mostly_beyond(analysis, *people))


def _left_out(analysis: Assembled, census: pd.DataFrame) -> list[str]:
    """A note where people of a census differ in what the formula does not name."""
    named = [str(name) for name in analysis.cells.frame.columns]
    held = _held_in(named, census)
    others = [str(name) for name in census.columns if name not in named and name != held]
    others = [name for name in others if census[name].nunique(dropna=False) > 1]
    if not others:
        return []
    return [
        f"the census tells people apart by {listed(others)}, which the formula does not name: shares take "
        "them to answer alike, and those asked to be like all others; name it where the reports have it"
    ]


def _refuse_many(frame: pd.DataFrame, by: str | None) -> None:
    levels = frame[by].nunique() if by is not None else 0
    if levels > MOST_LEVELS:
        raise InputError(
            f"--by {by}: it has {levels} values, and at most {MOST_LEVELS} can be told apart",
            code="options.by_too_many_values",
        )


def _totals(
    analysis: Assembled, how: str, whole: Draws, weights: Values, level: str = ""
) -> Iterator[Quantity]:
    """level: of the column by which people are told apart, as "region = north"."""
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
