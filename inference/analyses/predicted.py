"""Compute what the draws of an analysis expect over any public frame: shares of answers, or means."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from scipy.special import softmax

from inference.analyses.matrices import again
from inference.analyses.program import Assembled
from inference.analyses.table import Values
from inference.analyses.varying import Group, levels_of
from inference.models.base import Draws

# The most numbers in memory at a time: 160 MB. Beyond MOST in all, fewer draws are used.
AT_ONCE, MOST = 20_000_000, 200_000_000
FEWEST_DRAWS = 400


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
        self._law = analysis.law.coefficients(self._sites)
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
        return np.exp(self._computed(outcome.law.at, eta, self._own))

    def below(self, eta: Values, cuts: Values) -> Values:
        """Return P(a number ≤ cut), (draws, rows, combinations, cuts)."""
        if self.analysis.outcome.answers:
            return np.zeros_like(eta[..., :1])
        own = {name: values[..., None] for name, values in self._own.items()}
        found = self._computed(partial(self.analysis.outcome.law.below, cuts), eta[..., :1], own)
        # Very wide priors overflow floating point.
        return np.nan_to_num(found)

    def beyond(self, frame: pd.DataFrame, weights: Values, low: float, high: float) -> float:
        """Return the share of people whose number the law puts below low or above high, over the draws."""
        cuts = np.asarray([low, high])

        def outside(rows: pd.DataFrame) -> Values:
            shares, eta = self.laws(rows)
            below = np.einsum("srk,srkc->src", shares, self.below(eta, cuts))
            return below[..., :1] + 1 - below[..., 1:]

        return float(self._averaged(frame, weights, outside).mean())

    def reported(self, eta: Values, parts: Callable[[Array, Mapping[str, Array]], Array]) -> Values:
        """Return P(the report of a private number is in each part), (draws, rows, combinations, parts).

        parts: the same probabilities, from linear predictors and the law's own parameters.
        """
        found = self._computed(parts, eta, self._own)
        # Very wide priors overflow floating point.
        sound = np.isfinite(found).all(axis=-1, keepdims=True)
        return np.where(sound, found, np.eye(found.shape[-1])[-1])

    def _computed(
        self, of: Callable[[Array, Mapping[str, Array]], Array], eta: Values, own: Mapping[str, Values]
    ) -> Values:
        with jax.enable_x64(True):
            found = of(jnp.asarray(eta), {name: jnp.asarray(values) for name, values in own.items()})
            return np.asarray(found, np.float64)

    def _varying(self, group: Group, rows: pd.DataFrame) -> Values:
        """Return what a group's effects add."""
        effects = group.effects(self._sites)
        codes, levels = levels_of(rows[group.column])
        known = {level: place for place, level in enumerate(group.levels)}
        own = [effects[:, known[level]] if level in known else self._drawn(group, level) for level in levels]
        added = np.stack(own, axis=1)[:, codes]
        predictors = () if group.lead else self.analysis.predictors
        return np.asarray(np.einsum("rkj,srjo->srko", again(group.matrix, rows, predictors), added))

    def _drawn(self, group: Group, level: str) -> Values:
        """Draw the effects of a level without reports from the groups' law: (draws, columns, outputs)."""
        if (group.site, level) not in self._new:
            sds = [self._sites[f"{group.site}_sd_{place}"] for place in range(len(group.spreads))]
            spread = np.stack(sds, axis=1)
            self._new[group.site, level] = self._random.normal(size=spread.shape) * spread
        return self._new[group.site, level]
