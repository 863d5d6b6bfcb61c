"""From coefficients to people: shares by group, weighted, or over a census; none of it costs privacy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.beyond_reports import beyond, mostly_beyond
from inference.analyses.blanks import as_listed
from inference.analyses.cells import distinct_rows, refuse_blanks
from inference.analyses.census import (
    in_kind_of,
    labels_of,
    levels_among,
    notes_of,
    refuse_below_itself,
    refuse_beyond_bounds,
    refuse_other_spelling,
    unseen,
)
from inference.analyses.effects import pairs_of, safe, shown
from inference.analyses.formula import known_column
from inference.analyses.marks import ALIKE, refuse_alike, refuse_marked
from inference.analyses.matrices import again
from inference.analyses.naming import Name, expanded
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.public_columns import as_taken
from inference.analyses.result import Draws
from inference.analyses.samples import Sampled, sampled_of
from inference.analyses.table import Table, Values
from inference.analyses.uncounted import uncounted
from inference.analyses.varying import levels_of
from inference.analyses.weight_notes import heavy, scaled, unlike
from inference.analyses.weights import ReplicateWeights, of_others, positive, probabilities
from inference.models.base import Draws as Sites
from inference.results.diagnostics import listed
from inference.results.quantity import Quantity
from ldp_client.commands.study_warnings import WAVE
from ldp_client.documents.errors import InputError, UsageError

# Of a census, how many people a row stands for; where the formula names a column `count`, the other one.
COUNT, PEOPLE = "count", "people"
People = tuple[pd.DataFrame, Values]
MOST_LEVELS = 200


@dataclass(frozen=True)
class Population:
    """Over whom shares are averaged, and how they were drawn.

    by: a public column of the formula, for each of whose levels they are. weights: one of the table: how many
    people a row stands for. inclusion: instead, the probability with which it was drawn. strata, cluster:
    public columns of the strata and the primary units of the sample. census: a frame (pandas, Polars or
    Arrow) of the formula's public columns with how many people each row stands for, in `count` (`people`
    where the formula names `count`).
    replicates: replicate weights beside `weights`, which say how it was drawn in place of strata and units.
    """

    by: str | None = None
    weights: str | None = None
    census: Any = None
    inclusion: str | None = None
    strata: str | None = None
    cluster: str | None = None
    replicates: ReplicateWeights | None = None

    def columns(self) -> list[Name]:
        """The table's columns that it reads, besides the formula's."""
        by = self.by if self.census is None else None
        named = (by, self.weights, self.inclusion, self.strata, self.cluster)
        replicates = self.replicates.names if self.replicates is not None else []
        return [name for name in dict.fromkeys([*named, *replicates]) if name is not None]

    @property
    def drawn(self) -> bool:
        """Whether it says how people were drawn, so that an estimate needs no model."""
        return any(name is not None for name in (self.weights, self.inclusion, self.strata, self.cluster))

    @property
    def weighted(self) -> bool:
        """Whether some rows stand for more people than others."""
        return self.weights is not None or self.inclusion is not None

    def weights_of(self, table: Table) -> Values:
        """(rows,) how many people each row stands for; ones where nothing says so."""
        if self.inclusion is not None:
            return 1 / table.public[self.inclusion].to_numpy(np.float64)
        if self.weights is not None:
            return table.public[self.weights].to_numpy(np.float64)
        return np.ones(len(table.counts))

    def notes(self, table: Table) -> tuple[str, ...]:
        """What a reader must know of weights, and of what replicate weights were used for."""
        found = tuple(heavy(table, self.weights_of(table)))
        if self.weights is not None:
            everybody = table.everybody
            weights = self.weights_of(everybody)
            totals = {at: float(everybody.counts[rows] @ weights[rows]) for at, rows in everybody.samples}
            found += (*scaled(everybody, weights, self.weights), *unlike(table.waves, self.weights, totals))
        found += of_others(table) if self.weighted else ()
        if self.replicates is None or self.weights is None:
            return found
        return (*found, self.replicates.of(table, self.weights).in_words(self.replicates.kind))

    def sampled(self, table: Table) -> Sampled:
        """How the table was drawn. Raises InputError for a cluster in two strata."""
        if self.replicates is not None and self.weights is not None:
            replicates = self.replicates.of(table, self.weights)
            weights, units = self.weights_of(table), replicates.units
            return Sampled(weights, clusters=units, scaled=True, replicates=replicates)
        chances = table.public[self.inclusion].to_numpy(np.float64) if self.inclusion is not None else None
        return sampled_of(table, self.weights_of(table), self.strata, self.cluster, self.weighted, chances)

    def checked(self, table: Table) -> Population:
        """Itself; raises InputError for columns that are absent or not public, or weights that are none."""
        if self.census is not None and self.drawn:
            raise InputError(
                "a census, and weights or how people were drawn, both say for whom they stand: give one",
                code="census.with_weights",
            )
        if self.weights is not None and self.inclusion is not None:
            raise InputError(
                "inclusion probabilities are one over weights: give one of the two",
                code="weights.with_inclusion_probabilities",
            )
        self._check_replicates()
        columns = expanded(self.columns(), table.names)
        for name in (self.by, *columns):
            if name in table.private:
                raise InputError(
                    f"{name} is private: groups and weights must be public", code="weights.private_column"
                )
        for name in columns:
            known_column(name, [str(column) for column in table.public.columns])
            refuse_blanks(table.public[name], name)
        refuse_alike(table.alike, (self.by, self.strata, self.cluster))
        self._check_weights(table)
        return self

    def _check_weights(self, table: Table) -> None:
        """Raises InputError for weights that are none."""
        if self.weights is not None:
            positive(table.public[self.weights], self.weights)
        if self.inclusion is not None:
            probabilities(table.public[self.inclusion], self.inclusion)
        if self.replicates is not None and self.weights is not None:
            self.replicates.of(table, self.weights)

    def _check_replicates(self) -> None:
        """Raises InputError for what does not stand beside replicate weights."""
        if self.replicates is None:
            return
        if self.weights is None:
            raise UsageError(
                "replicate weights need the weights that they replicate: --weights COLUMN",
                code="weights.replicates_without_weights",
            )
        if self.strata is not None or self.cluster is not None:
            raise InputError(
                "replicate weights say how people were drawn: leave out strata and clusters",
                code="weights.replicates_with_strata",
            )


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
    refuse_marked(census, [*needed, held], "the census: ")
    refuse_alike(census.attrs.get(ALIKE, {}), levels_among(analysis, population.by), "the census: ")
    census = as_taken(census, [*needed, held], "the census: ", labels)
    counts = positive(census[held], f"{held} of the census", 0.0)
    if not counts.sum():
        raise InputError("the census counts nobody", code="census.counts_nobody")
    refuse_below_itself(census, counts)
    alike = {name: in_kind_of(census[name], analysis.cells.frame[name], name) for name in needed}
    frame = census.assign(**alike).reset_index(drop=True)
    refuse_beyond_bounds(frame[needed], counts, table.bounds)
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
    """What a census tells that the formula leaves out, and how many are in groups that no report had.

    Raises InputError for a group whose name is a known one in other case, or with other blanks or zeros.
    """
    frame, weights = people
    found = (
        []
        if population.census is None
        else [*_left_out(analysis, frame), *_slips(analysis, people, population.by)]
    )
    known = {one.column: one.levels for one in analysis.every_group}
    for column, levels in known.items():
        codes, own = levels_of(frame[column])
        new = [level for level in own if level not in levels]
        refuse_other_spelling(column, new, levels)
        many = weights[np.isin(codes, [own.index(level) for level in new])].sum()
        if many:
            found.append(
                f"{many:,.0f} of {weights.sum():,.0f} people are in groups of {column} that no report had "
                f"({listed(new)}): they are drawn from the groups' law"
            )
    return (*found, *(one.in_words(weights) for one in beyond(analysis, frame, weights)))


def _slips(analysis: Assembled, people: People, by: str | None) -> Iterator[str]:
    """Notes of what looks like a slip in a census."""
    yield from notes_of(*people, analysis.cells.frame, analysis.cells.sizes)
    yield from uncounted(analysis, *people, by).notes
    frame, counts = people
    if WAVE in analysis.cells.frame.columns:
        codes, waves = levels_of(frame[WAVE])
        totals = np.bincount(codes, counts, len(waves))
        yield from unlike(WAVE, "the census", {f"{WAVE} = {one}": n for one, n in zip(waves, totals) if n})


def left_out_of(analysis: Assembled, people: People, population: Population) -> tuple[str, ...]:
    """Reasons not to take shares and totals in a census for those of all who were asked."""
    if population.census is None:
        return ()
    return (*uncounted(analysis, *people, population.by).reasons, *mostly_beyond(analysis, *people))


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
