"""Whether weights tell of what a formula leaves out, so that its weighted averages are not the people's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats

from inference.analyses.cells import distinct_rows
from inference.analyses.design_based import covariance_of, freedom, scores_of
from inference.analyses.population import Population
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.samples import Sampled
from inference.analyses.table import Codes, Table, Values
from inference.analyses.varying import levels_of
from inference.models.base import Draws as Sites
from ldp_client.documents.errors import InputError

# Averages that agree are called apart so often at most.
FALSE_ALARM = 1e-3
# Of the largest weight: what is left below it is how numbers were rounded, the same for a whole cell.
ROUNDING = 1e-6
Found = tuple[tuple[str, ...], tuple[str, ...]]


def weights_apart(analysis: Assembled, table: Table, sites: Sites, over: Population) -> Found:
    """Reasons not to believe the model's weighted averages, of all and by group, and notes.

    The formula says that people of one cell answer alike, whatever their weights. So what the reports say
    beyond the fit must not go with the part of the weights that the formula's columns do not explain, in a
    straight line: that part is all but untouched by how the coefficients were estimated. Where people do
    answer alike, some average is called apart at most once in a thousand surveys.
    """
    if not over.weighted:
        return (), ()
    cell, frame = distinct_rows(table.public[[str(name) for name in analysis.cells.frame.columns]])
    expected = Predicted(analysis, sites, len(frame)).means(frame)
    groups = list(_groups(table, over))
    reasons = []
    try:
        rest, sampled = _scores(analysis, table) - expected[cell], over.sampled(table)
        for where, weights in groups:
            own = _unexplained(analysis, table, cell, expected, weights)
            if _chance(own, rest, table.counts, sampled) < FALSE_ALARM / len(groups):
                reasons.append(
                    f"{analysis.formula.outcome}{where}: the model's weighted average and what the weighted "
                    "reports say without it differ by more than chance would: weights tell of what the "
                    "formula leaves out; name in it what they depend on, or quote none of its averages"
                )
    except InputError as error:
        return (), (f"the model was not held against weights: {error}",)
    return tuple(reasons), ()


def _groups(table: Table, over: Population) -> Iterator[tuple[str, Values]]:
    """Over whom averages run, in words, and the weights (rows,), 0 outside."""
    weights = over.weights_of(table)
    yield "", weights
    if over.by is not None:
        codes, levels = levels_of(table.public[over.by])
        for place in np.unique(codes):
            yield f" where {over.by} = {levels[place]}", weights * (codes == place)


def _scores(analysis: Assembled, table: Table) -> Values:
    """(rows, answers) whose mean at a true answer is 1 there, else 0; (rows, 1) of a public number."""
    if analysis.response is not None:
        return scores_of(analysis.response)
    column = table.public[analysis.formula.outcome]
    if not analysis.outcome.answers:
        return np.asarray(column.to_numpy(np.float64)[:, None])
    codes, levels = levels_of(column)
    return np.asarray(np.eye(len(levels))[codes])


def _unexplained(analysis: Assembled, table: Table, cell: Codes, expected: Values, weights: Values) -> Values:
    """What the formula's columns leave of weights (rows,), where reports tell most of these."""
    columns = analysis.law.matrix.values.mean(axis=1)
    columns = np.column_stack([columns, np.ones(len(columns))])
    spread = (expected * (1 - expected)).sum(axis=1) if analysis.outcome.answers else np.ones(len(columns))
    sizes = np.bincount(cell, table.counts, len(columns))
    means = np.bincount(cell, table.counts * weights, len(columns)) / sizes
    root = np.sqrt(sizes * spread)
    slopes = np.linalg.lstsq(columns * root[:, None], means * root, rcond=None)[0]
    left = np.asarray(weights - (columns @ slopes)[cell])
    return np.where(np.abs(left) > ROUNDING * np.abs(weights).max(), left, 0.0)


def _chance(own: Values, rest: Values, counts: Codes, sampled: Sampled) -> float:
    """How often the sum of own × rest is as far from zero, where the two have nothing to do with each other.

    own: (rows,). rest: (rows, answers).
    """
    rest = rest[:, 1:] if rest.shape[1] > 1 else rest
    own = own / max(float(np.abs(own).max()), np.finfo(float).tiny)
    linear = own[:, None] * rest
    moved, covariance = counts @ linear, covariance_of(linear, counts, sampled)
    # Where few weigh much, their own reports may by chance differ less than those of all.
    squares = float(counts @ own**2)
    least = squares * (counts @ rest**2) / counts.sum()
    known = np.diag(covariance) > 0
    if not known.all():
        return 1.0
    covariance = covariance * max(1.0, float(np.max(least / np.diag(covariance))))
    degrees = min(freedom(counts, sampled), squares**2 / float(counts @ own**4) - 1)
    return _tail(float(moved @ np.linalg.pinv(covariance) @ moved), len(moved), degrees)


def _tail(statistic: float, size: int, degrees: float) -> float:
    """P(Hotelling's T² is larger)."""
    left = degrees - size + 1
    return float(stats.f.sf(statistic * left / (size * degrees), size, left)) if left > 0 else 1.0
