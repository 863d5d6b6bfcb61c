"""What the draws of an analysis expect of people: shares of answers or means, and quantities that follow."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from scipy.special import softmax

from inference.analyses.formula import INTERCEPT
from inference.analyses.matrices import again
from inference.analyses.program import Assembled
from inference.analyses.table import Values, level_text
from inference.analyses.varying import Group, levels_of
from inference.models.base import Draws
from inference.results.quantity import Quantity

# The most numbers in memory at a time: 160 MB. Beyond MOST in all, fewer draws are used.
AT_ONCE, MOST = 20_000_000, 200_000_000
FEWEST_DRAWS = 400
# A column with more levels is not set to each of them.
MOST_LEVELS = 60
MOST_CONTRASTS = 60
# Cells × answers. Beyond it, setting every column to every level takes longer than the fit.
MOST_SET = 200_000


class Predicted:
    """Expected answers at draws of an analysis.

    sites: {site: (chains, draws, …)}. Every average has the shape (chains, draws, answers), with a last
    axis of one for a number's mean. seed: for the effects of groups without reports.
    """

    def __init__(self, analysis: Assembled, sites: Draws, rows: int = 1, seed: int = 0) -> None:
        self.analysis = analysis
        chains, kept = next(iter(sites.values())).shape[:2]
        each = rows * len(analysis.law.matrix.combinations) * max(len(analysis.outcome.answers), 1)
        wanted = max(min(FEWEST_DRAWS // chains, kept), min(kept, MOST // max(each * chains, 1)))
        step = max(kept // wanted, 1)
        some = {name: values[:, ::step] for name, values in sites.items()}
        self.shape = next(iter(some.values())).shape[:2]
        self._sites = {name: values.reshape(-1, *values.shape[2:]) for name, values in some.items()}
        # Shared by all averages, so that a group's share is the same in its total and in a difference.
        self._random = np.random.default_rng(seed)
        self._new: dict[tuple[str, str], Values] = {}
        law = analysis.law.coefficients(self._sites)
        self._law = np.broadcast_to(law, (self.shape[0] * self.shape[1], *law.shape[-2:]))
        self._shares = None if analysis.shares is None else analysis.shares.coefficients(self._sites)
        named = analysis.parameters(self._sites)
        if analysis.outcome.cutpoints:
            cuts = [named[f"threshold[{one}]"] for one in analysis.outcome.answers[:-1]]
            self._own = {"threshold": np.stack(cuts, axis=-1)[:, None, None, :]}
        else:
            self._own = {name: named[name][:, None, None] for name in analysis.outcome.own}

    def average(self, frame: pd.DataFrame, weights: Values) -> Values:
        """Return the weighted mean over the rows of a frame of public columns."""
        return self._averaged(frame, weights, self._of_rows)

    def means(self, frame: pd.DataFrame) -> Values:
        """Return each row's mean over the draws, (rows, answers)."""
        return np.concatenate([self._of_rows(rows).mean(axis=0) for rows, _ in self._in_parts(frame)])

    def _averaged(
        self, frame: pd.DataFrame, weights: Values, of_rows: Callable[[pd.DataFrame], Values]
    ) -> Values:
        """Return the weighted mean (chains, draws, …) over the rows."""
        shares = weights / float(weights.sum())
        parts = [np.einsum("sra,r->sa", of_rows(rows), shares[at]) for rows, at in self._in_parts(frame)]
        return np.asarray(sum(parts)).reshape(*self.shape, -1)

    def _in_parts(self, frame: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, slice]]:
        """Yield as many rows at a time as fit into memory, with their slice."""
        each = self._law.size * len(self.analysis.law.matrix.combinations)
        size = max(AT_ONCE // max(each, 1), 1)
        for start in range(0, len(frame), size):
            at = slice(start, start + size)
            yield frame.iloc[at].reset_index(drop=True), at

    def _of_rows(self, rows: pd.DataFrame) -> Values:
        """Return each row's (draws, rows, answers)."""
        shares, eta = self.laws(rows)
        values = self.expected(eta)
        return values[:, :, 0] if not self.analysis.predictors else np.einsum("srk,srka->sra", shares, values)

    def laws(self, rows: pd.DataFrame) -> tuple[Values, Values]:
        """Return each row's shares of the private predictors' answers, (draws, rows, combinations), and η."""
        analysis = self.analysis
        columns = again(analysis.law.matrix, rows, analysis.predictors)
        eta = np.einsum("rkj,sjo->srko", columns, self._law)
        for group in analysis.groups:
            eta += self._varying(group, rows)
        if analysis.shares is None or self._shares is None:
            return np.ones(eta.shape[:3]), eta
        logits = np.einsum("rkj,sjo->srko", again(analysis.shares.matrix, rows), self._shares)
        for group in analysis.shares_groups:
            logits += self._varying(group, rows)
        logits = np.concatenate([np.zeros_like(logits[:, :, 0, :1]), logits[:, :, 0]], axis=-1)
        return softmax(logits, axis=-1), eta

    def expected(self, eta: Values) -> Values:
        """Return (draws, rows, combinations, answers) from linear predictors; for a number, its mean."""
        outcome = self.analysis.outcome
        if not outcome.answers:
            return np.exp(eta) if outcome.law.log_link else eta
        return np.exp(self._computed(outcome.law.at, eta))

    def beyond(self, frame: pd.DataFrame, weights: Values, low: float, high: float) -> float:
        """Return the share of people whose number the law puts below low or above high, over the draws."""

        def outside(rows: pd.DataFrame) -> Values:
            shares, eta = self.laws(rows)
            parts = self.parts(eta, partial(self.between, np.asarray([low, high])))
            return np.einsum("srk,srkp->srp", shares, parts)[..., ::2].sum(axis=-1, keepdims=True)

        return float(self._averaged(frame, weights, outside).mean())

    def between(self, cuts: Values, eta: Array, own: Mapping[str, Array]) -> Array:
        """Return P(a number is in each part between cuts), (draws, rows, combinations, cuts + 1)."""
        own = {name: values[..., None] for name, values in own.items()}
        below = self.analysis.outcome.law.below(cuts, eta[..., :1], own)
        ends = jnp.zeros((*below.shape[:-1], 1))
        return jnp.diff(jnp.concatenate([ends, below, ends + 1], axis=-1), axis=-1)

    def parts(self, eta: Values, parts: Callable[[Array, Mapping[str, Array]], Array]) -> Values:
        """Return P(a number, or its report, is in each part), (draws, rows, combinations, parts).

        parts: the same probabilities, from linear predictors and the law's own parameters.
        """
        found = self._computed(parts, eta)
        # Very wide priors overflow floating point.
        sound = np.isfinite(found).all(axis=-1, keepdims=True)
        return np.where(sound, found, np.eye(found.shape[-1])[-1])

    def _computed(self, of: Callable[[Array, Mapping[str, Array]], Array], eta: Values) -> Values:
        with jax.enable_x64(True):
            found = of(jnp.asarray(eta), {name: jnp.asarray(values) for name, values in self._own.items()})
            return np.asarray(found, np.float64)

    def _varying(self, group: Group, rows: pd.DataFrame) -> Values:
        """Return what a group's effects add."""
        effects = group.effects(self._sites)
        codes, levels = levels_of(rows[group.column])
        known = {level: place for place, level in enumerate(group.levels)}
        own = [effects[:, known[level]] if level in known else self._drawn(group, level) for level in levels]
        added = np.stack(own, axis=1)[:, codes]
        predictors = () if group.labels.lead else self.analysis.predictors
        return np.asarray(np.einsum("rkj,srjo->srko", again(group.matrix, rows, predictors), added))

    def _drawn(self, group: Group, level: str) -> Values:
        """Draw the effects of a level without reports from the groups' law: (draws, columns, outputs)."""
        if (group.site, level) not in self._new:
            sds = [self._sites[f"{group.site}_sd_{place}"] for place in range(len(group.spreads))]
            spread = np.stack(sds, axis=1)
            self._new[group.site, level] = self._random.normal(size=spread.shape) * spread
        return self._new[group.site, level]


def quantities_of(analysis: Assembled, sites: Draws, seed: int = 0) -> tuple[Quantity, ...]:
    """Return odds ratios, the average of all people, and the averages at each level of each public column.

    To compare levels, the column is set to the level for all people, and everything else is unchanged.
    """
    frame, sizes = analysis.table.frame, analysis.table.sizes.astype(np.float64)
    predicted = Predicted(analysis, sites, len(frame), seed)
    found = shown(analysis, "", predicted.average(frame, sizes), "", " of all who reported")
    for column in frame.columns if sets_levels(analysis) else ():
        found += _by_levels(analysis, predicted, str(column), frame, sizes)
    if not analysis.outcome.odds:
        return tuple(found)
    law, answers = analysis.law, analysis.outcome.answers
    for one, draws in zip(law.entries, np.moveaxis(law.values(sites), -1, 0), strict=True):
        if one.variable != INTERCEPT:
            against = f"= {one.coordinates[law.labels.dimension] or answers[1]} against {answers[0]}"
            of = "being higher" if analysis.outcome.name == "ordered" else against
            words = f"odds ratio of {one.name}, for {analysis.formula.outcome} {of}"
            found.append(Quantity(f"odds ratio {one.name}", words, np.exp(draws)))
    return tuple(found)


def sets_levels(analysis: Assembled) -> bool:
    """Return True if there are few enough cells to set each of their columns to each of its levels."""
    each = len(analysis.law.matrix.combinations) * max(len(analysis.outcome.answers), 1)
    return len(analysis.table.frame) * each <= MOST_SET


def _by_levels(
    analysis: Assembled, predicted: Predicted, column: str, frame: pd.DataFrame, sizes: Values
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
    averages: Mapping[str, Values],
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
    analysis: Assembled, what: str, draws: Values, before: str, after: str, contrast: bool = False
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


def by_answer(analysis: Assembled, draws: Values) -> Iterator[tuple[str, Values]]:
    """Yield the event of two answers, or all of more, or a number, with its draws (chains, draws)."""
    of, answers = analysis.formula.outcome, analysis.outcome.answers
    if not answers:
        yield of, draws[..., 0]
    for place, answer in enumerate(answers):
        if len(answers) > 2 or place == 1:
            yield f"{of} = {answer}", draws[..., place]
