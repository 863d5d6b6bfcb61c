"""What the draws of an analysis expect of people: shares of answers, or means, over any public frame."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from inference.analyses.matrices import again
from inference.analyses.program import Assembled
from inference.analyses.table import Values
from inference.analyses.varying import Group, levels_of
from inference.models.base import Draws

# Numbers in memory at a time: 160 MB. Beyond so many in all, fewer draws are taken.
AT_ONCE, MOST = 20_000_000, 200_000_000
FEWEST_DRAWS = 400


class Predicted:
    """Expected answers at draws of an analysis.

    sites: {site: (chains, draws, …)}. Every average has the shape (chains, draws, answers), or a last axis of
    one for a number's mean. seed: of the effects of groups that no report had.
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
        self._seed = seed
        self._law = analysis.law.coefficients(self._sites)
        self._shares = None if analysis.shares is None else analysis.shares.coefficients(self._sites)
        named = analysis.parameters(self._sites)
        if analysis.outcome.cutpoints:
            cuts = [named[f"threshold[{one}]"] for one in analysis.outcome.answers[:-1]]
            self._own = {"threshold": np.stack(cuts, axis=-1)[:, None, None, :]}
        else:
            self._own = {one.name: named[one.name][:, None, None] for one in analysis.outcome.own}

    def each(self, frame: pd.DataFrame) -> Values:
        """Of each row of a frame, (draws, rows, answers); the frame must be small."""
        new: dict[str, dict[str, Values]] = {
            group.site: {} for group in (*self.analysis.groups, *self.analysis.shares_groups)
        }
        return self._of_rows(frame, new, np.random.default_rng(self._seed))

    def average(self, frame: pd.DataFrame, weights: Values) -> Values:
        """The mean over the rows of a frame of public columns, weighted."""
        total = np.zeros((len(self._law), max(len(self.analysis.outcome.answers), 1)))
        whole = float(weights.sum())
        size = max(
            AT_ONCE // (len(self._law) * self._law[0].size * len(self.analysis.law.matrix.combinations)), 1
        )
        random = np.random.default_rng(self._seed)
        new: dict[str, dict[str, Values]] = {
            group.site: {} for group in (*self.analysis.groups, *self.analysis.shares_groups)
        }
        for start in range(0, len(frame), size):
            rows = frame.iloc[start : start + size].reset_index(drop=True)
            found = self._of_rows(rows, new, random)
            total += np.einsum("sra,r->sa", found, weights[start : start + size] / whole)
        return total.reshape(*self.shape, -1)

    def _of_rows(
        self, rows: pd.DataFrame, new: dict[str, dict[str, Values]], random: np.random.Generator
    ) -> Values:
        """(draws, rows, answers) of each row."""
        analysis = self.analysis
        columns = again(analysis.law.matrix, rows, analysis.predictors)
        eta = np.einsum("rkj,sjo->srko", columns, self._law)
        for group in analysis.groups:
            eta += self._varying(group, rows, new, random)
        with jax.enable_x64(True):
            values = self._expected(eta)
        if analysis.shares is None or self._shares is None:
            return values[:, :, 0]
        logits = np.einsum(
            "rkj,sjo->srko", again(analysis.shares.matrix, rows, analysis.predictors), self._shares
        )
        for group in analysis.shares_groups:
            logits += self._varying(group, rows, new, random)
        logits = np.concatenate([np.zeros_like(logits[:, :, 0, :1]), logits[:, :, 0]], axis=-1)
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return np.einsum("srk,srka->sra", shares, values)

    def _expected(self, eta: Values) -> Values:
        """(draws, rows, combinations, answers) of linear predictors."""
        outcome = self.analysis.outcome
        own = {name: jnp.asarray(values) for name, values in self._own.items()}
        if outcome.answers:
            return np.exp(np.asarray(outcome.log_law(jnp.asarray(eta), own)))
        return np.exp(eta) if outcome.name in ("poisson", "negative_binomial") else eta

    def _varying(
        self, group: Group, rows: pd.DataFrame, new: dict[str, dict[str, Values]], random: np.random.Generator
    ) -> Values:
        """What a group's effects add; of a level that no report had, drawn from the groups' law."""
        effects = group.effects(self._sites)
        codes, levels = levels_of(rows[group.column])
        known = {level: place for place, level in enumerate(group.levels)}
        own = []
        for level in levels:
            if level in known:
                own.append(effects[:, known[level]])
                continue
            if level not in new[group.site]:
                sds = np.stack(
                    [self._sites[f"{group.site}_sd_{j}"] for j in range(len(group.spreads))], axis=1
                )
                new[group.site][level] = random.normal(size=sds.shape) * sds
            own.append(new[group.site][level])
        added = np.stack(own, axis=1)[:, codes]
        predictors = () if group.lead else self.analysis.predictors
        return np.asarray(np.einsum("rkj,srjo->srko", again(group.matrix, rows, predictors), added))
