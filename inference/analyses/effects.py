"""Quantities that analysts quote: odds ratios, shares by level, and average differences between levels."""

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from inference.analyses.parameter_names import INTERCEPT
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.table import level_text
from inference.models.base import Draws as Sites
from inference.results.quantity import Draws, Quantity

# A column with more levels is not set to each of them.
MOST_LEVELS = 60
MOST_CONTRASTS = 60
# Cells × answers. Beyond it, setting every column to every level takes longer than the fit.
MOST_SET = 200_000


def quantities_of(analysis: Assembled, sites: Sites, seed: int = 0) -> tuple[Quantity, ...]:
    """Return odds ratios, the average of all people, and the averages at each level of each public column.

    To compare levels, the column is set to the level for all people, and everything else is unchanged.
    """
    frame, sizes = analysis.table.frame, analysis.table.sizes.astype(np.float64)
    predicted = Predicted(analysis, sites, len(frame), seed)
    found = shown(analysis, "", predicted.average(frame, sizes), "", " of all who reported")
    for column in frame.columns if sets_levels(analysis) else ():
        found += _by_levels(analysis, predicted, str(column), frame, sizes)
    return (*found, *_odds_ratios(analysis, sites))


def sets_levels(analysis: Assembled) -> bool:
    """Return True if there are few enough cells to set each of their columns to each of its levels."""
    each = len(analysis.law.matrix.combinations) * max(len(analysis.outcome.answers), 1)
    return len(analysis.table.frame) * each <= MOST_SET


def _odds_ratios(analysis: Assembled, sites: Sites) -> Iterator[Quantity]:
    """Yield exp of each coefficient."""
    if not analysis.outcome.odds:
        return
    law, answers = analysis.law, analysis.outcome.answers
    for one, draws in zip(law.entries, np.moveaxis(law.values(sites), -1, 0), strict=True):
        if one.variable != INTERCEPT:
            against = f"= {one.coordinates[law.dimension] or answers[1]} against {answers[0]}"
            of = "being higher" if analysis.outcome.name == "ordered" else against
            words = f"odds ratio of {one.name}, for {analysis.formula.outcome} {of}"
            yield Quantity(f"odds ratio {one.name}", words, np.exp(draws))


def _by_levels(
    analysis: Assembled, predicted: Predicted, column: str, frame: pd.DataFrame, sizes: Draws
) -> list[Quantity]:
    """Return averages with all people at each level of a column, or at the quartiles of a number."""
    values = frame[column]
    # A numeric column may be one of groups, or of levels as C(column).
    is_factor = any(group.column == column for group in analysis.groups)
    is_factor |= re.search(rf"\bC\(\s*`?{re.escape(column)}\b", analysis.formula.fixed) is not None
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > 2 and not is_factor:
        order = np.argsort(values.to_numpy(np.float64))
        share = np.cumsum(sizes[order]) / sizes.sum()
        levels = [values.iloc[order[np.searchsorted(share, at)]] for at in (0.25, 0.75)]
        levels = levels if levels[0] != levels[1] else []
    elif isinstance(values.dtype, pd.CategoricalDtype):
        levels = list(values.cat.categories)
    else:
        levels = sorted(values.unique())
    if not 2 <= len(levels) <= MOST_LEVELS:
        return []
    averages = {}
    for level in levels:
        all_there = frame.assign(**{column: pd.Series([level] * len(frame), dtype=values.dtype)})
        averages[level_text(level)] = predicted.average(all_there, sizes)
    return compared(analysis, column, averages, " with all people at ", "average difference of ")


def compared(
    analysis: Assembled,
    column: str,
    averages: Mapping[str, Draws],
    people: str,
    difference: str,
    how: str = "",
) -> list[Quantity]:
    """Return the average at each level of a column, and the differences of two levels.

    people, difference: for the sentences. how: is added to the names.
    """
    found = []
    for level, draws in averages.items():
        at = f"{column} = {level}{how}"
        found += shown(analysis, at, draws, "", people + at)
    pairs = list(combinations(averages, 2))
    if len(pairs) > MOST_CONTRASTS:
        # Each level against the first.
        pairs = pairs[: len(averages) - 1]
    for one, other in pairs:
        what = f"{column}: {other} − {one}{how}"
        found += shown(analysis, what, averages[other] - averages[one], difference, f", {what}", True)
    return found


def shown(
    analysis: Assembled, what: str, draws: Draws, before: str, after: str, contrast: bool = False
) -> list[Quantity]:
    """Return quantities of averages (chains, draws, answers).

    what: the people, for the names. before, after: what a sentence says around the share or mean. contrast:
    True if the averages are differences.
    """
    kind, end = "share" if analysis.outcome.answers else "mean", f", {what}" if what else ""
    return [
        Quantity(f"{kind} {of}{end}", f"{before}the {kind} of {of}{after}", values, contrast)
        for of, values in by_answer(analysis, draws)
    ]


def by_answer(analysis: Assembled, draws: Draws) -> Iterator[tuple[str, Draws]]:
    """Yield the event of two answers, or all of more, or a number, with its draws (chains, draws)."""
    of, answers = analysis.formula.outcome, analysis.outcome.answers
    if not answers:
        yield of, draws[..., 0]
    for place, answer in enumerate(answers):
        if len(answers) > 2 or place == 1:
            yield f"{of} = {answer}", draws[..., place]
