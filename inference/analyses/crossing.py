"""Crossed questions: the joint table of private columns, and their dependence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array

from inference.analyses.analysing import check_options
from inference.analyses.checking import impossible
from inference.analyses.families import OpenShares
from inference.analyses.formula import Parameter, by_name, known_column
from inference.analyses.joint_law import STATED, TINY, JointEffects, JointLaw
from inference.analyses.likelihood import joint
from inference.analyses.stated_priors import Given
from inference.analyses.table import Private, Table, Values
from inference.analyses.varying import levels_of
from inference.compiling import use_compile_cache
from inference.fit_model import fit_model
from inference.models.base import Draws as Sites
from inference.models.base import Fit, Model
from inference.results.posterior import Posterior
from inference.results.prior_notes import NEAR
from inference.results.quantity import Quantity
from inference.results.verdict import CARE, DROWNED, INFORMATIVENESS, Finding, listed
from inference.samplers import CHAINS, KEPT
from ldp_client.documents.errors import InputError, UsageError

MOST_SHARES = 2000
NO_OTHER_PRIOR = "take more people or a larger epsilon"
NO_LAW = "a joint table has no law to check: only whether the noise can give such reports was checked"
ENDS = (0.05, 0.5, 0.95)


def cross_table(
    table: Table,
    names: Sequence[str],
    by: str | None = None,
    *,
    priors: Mapping[str, Any] | None = None,
    seed: int = 0,
    method: str = "nuts",
    draws: int = KEPT,
    chains: int = CHAINS,
    progress: Callable[[str], None] | None = None,
) -> Posterior:
    """Estimate the shares of all combinations of private answers, overall or by a public column.

    A priori each question's shares are uniform, and log odds ratios are normal around 0. priors: of shares
    that the channels leave open, by name. Raises InputError for columns that cannot be crossed, and for
    priors of other parameters.
    """
    check_options(seed, draws, chains, method)
    crossing = crossing_of(table, names, by, priors)
    use_compile_cache()
    asked = " × ".join(names) + (f" by {by}" if by else "")
    if progress:
        progress(f"crossing {asked}: {crossing.table.form}")
    return fit_model(
        crossing.model(table.notes),
        asked,
        table.n,
        seed=seed,
        method=method,
        draws=draws,
        chains=chains,
        predictive=lambda _model, _fit: None,
        more=table.doubts,
        remedy=NO_OTHER_PRIOR,
        question="-".join(names),
        model="joint table",
        study_digest=table.digest,
        prior={**STATED, **crossing.opened.priors},
        formula=asked,
        form=crossing.table.form,
        axes={name: one.axis for name, one in crossing.entries.items() if one.axis.coordinates},
        noise=table.noise,
    )


def crossing_of(
    table: Table, names: Sequence[str], by: str | None = None, priors: Mapping[str, Any] | None = None
) -> Crossing:
    """Count a table's reports for crossing. Raises InputError for columns that cannot be crossed."""
    choices = {name: one for name, one in table.private.items() if one.number is None}
    if len(names) < 2 or len(set(names)) < len(names) or not set(names) <= set(choices):
        raise UsageError(
            f"cross two or more different private choices ({', '.join(choices)}), and give a public column "
            "with --by",
            code="table.cross_needs_two_choices",
        )
    if by is not None:
        known_column(by, list(map(str, table.public.columns)), "--by: ")
    table = table.only([by] if by else [], names)
    given = Given(priors)
    found = Crossing(table, by, OpenShares([*table.private.values()], given))
    given.refuse_others()
    many = len(found.levels[1]) * int(np.prod(found.law.sizes))
    if many > MOST_SHARES:
        raise InputError(
            f"the table has {many:,} shares: at most {MOST_SHARES:,} can be estimated",
            code="table.cross_too_many_shares",
        )
    return found


@dataclass(frozen=True)
class Crossing:
    """Counted reports of private columns, with a separate joint law for each level of a public column.

    Shares have the axes (…, levels, combinations of answers), the last column's answers fastest.
    """

    table: Table
    by: str | None
    opened: OpenShares

    @property
    def columns(self) -> tuple[Private, ...]:
        """Return the crossed columns."""
        return tuple(self.table.private.values())

    @cached_property
    def law(self) -> JointLaw:
        """Return the law of each level, whose site is `effects`."""
        return JointLaw(tuple(len(one.answers) for one in self.columns))

    @cached_property
    def levels(self) -> tuple[Values, tuple[str, ...]]:
        """Return each cell's level, and the levels' names; without a public column there is one."""
        codes, levels = levels_of(self.table.frame[self.by]) if self.by else (np.zeros(1, np.int64), ("",))
        return np.asarray(codes), levels

    @cached_property
    def entries(self) -> dict[str, Parameter]:
        """Return the shares, by name, then the shares that channels leave open."""
        dimensions = [f"{name}_dim" for name in (self.by, *(one.name for one in self.columns))]
        cases = product(self.levels[1], *(one.answers for one in self.columns))
        shares = [Parameter("p", dict(zip(dimensions, case, strict=True))) for case in cases]
        return by_name([*shares, *self.opened.entries])

    def model(self, notes: Sequence[str] = ()) -> Model:
        """Return the model of the joint shares."""
        table, (codes, levels) = self.table, self.levels
        leaves = {one.name: one.choices.vectors[:, one.codes] for one in self.columns}

        def program(level: Array, counts: Array, **leaves: Array) -> None:
            effects = numpyro.sample("effects", JointEffects(self.law, len(levels)))
            weights = self.opened.draw()
            vectors = joint([one.choices.mixed(leaves[one.name], weights) for one in self.columns])
            chance = jnp.sum(vectors * jax.nn.softmax(effects @ self.law.basis.T, axis=-1)[level], axis=1)
            numpyro.factor("reports", jnp.sum(counts * jnp.log(chance)))

        return Model(
            program,
            {"level": codes[table.cell], "counts": table.counts.astype(np.float64), **leaves},
            {"effects": np.zeros((len(levels), self.law.basis.shape[1])), **self.opened.initial()},
            self.parameters,
            (*notes, table.form, NO_LAW),
            (self.one_sided, self.impossible),
            lambda sites: {"quantities": tuple(self.quantities(sites).values())},
            # All quoted measures of dependence follow from the log odds ratios.
            compared=lambda sites: self.log_odds(self.law.shares(sites)),
        )

    def parameters(self, sites: Sites) -> dict[str, Values]:
        """Return {name: draws} of the shares, and of those that channels leave open."""
        shares = self.law.shares(sites)
        shares = np.moveaxis(shares.reshape(*shares.shape[:-2], -1), -1, 0)
        weights = [value for one in self.opened.weights for value in one.at(sites)[: len(one.names)]]
        return dict(zip(self.entries, (*shares, *weights), strict=True))

    def one_sided(self, fit: Fit) -> Iterator[Finding]:
        """Yield a reason if reports bound log odds ratios on one side at most, near their prior.

        Reports on rare answers may show that a log odds ratio is not large, but leave its other end to the
        prior. Its sd is then well below the prior's, and its interval is often wholly on one side of the
        truth.
        """
        after, before = (self.log_odds(self.law.shares(sites)) for sites in (fit.sites, fit.prior_sites))
        names = []
        for name, draws in after.items():
            low, middle, high = np.quantile(draws, ENDS)
            first, centre, last = np.quantile(before[name], ENDS)
            near = abs(draws.mean() - before[name].mean()) < NEAR * before[name].std()
            below, above = (middle - low) / (centre - first), (high - middle) / (last - centre)
            # One of its tails is as long as the prior's.
            if near and max(below, above) > DROWNED:
                names.append(name)
        if names:
            reason = (
                f"reports bound {listed(names)} on one side at most: the prior decides the other side, and "
                "V, odds ratios and conditional shares with it. Use more devices or a larger epsilon"
            )
            yield Finding(INFORMATIVENESS, reason, CARE)

    def impossible(self, fit: Fit) -> Iterator[Finding]:
        """Yield reasons if a column's reports are not as the fitted shares expect."""
        codes = self.levels[0]
        whole = self.law.shares(fit.sites).mean(axis=(0, 1))[codes].reshape(len(codes), *self.law.sizes)
        weights = {site: fit.sites[site].mean() for site in self.opened.laws}
        for place, one in enumerate(self.columns, 1):
            others = tuple(axis for axis in range(1, whole.ndim) if axis != place)
            yield from impossible(one, self.table, whole.sum(axis=others), weights)

    def pairs(self, shares: Values) -> Iterator[tuple[str, Private, Private, Values]]:
        """Yield each level and two columns: the level's suffix of names, both, and their shares (…, a, b)."""
        whole = shares.reshape(*shares.shape[:-1], *self.law.sizes)
        count = len(self.columns)
        for place, level in enumerate(self.levels[1]):
            of_level = np.take(whole, place, axis=-count - 1)
            for a, b in combinations(range(count), 2):
                others = tuple(axis - count for axis in range(count) if axis not in (a, b))
                added = f", {self.by} = {level}" if self.by else ""
                yield added, self.columns[a], self.columns[b], of_level.sum(axis=others)

    def log_odds(self, shares: Values) -> dict[str, Values]:
        """Return {name: log odds ratio (…)}, one for each two answers of more than two."""
        found = {}
        for added, first, second, pair in self.pairs(shares):
            if pair.shape[-2:] == (2, 2):
                found[f"log odds ratio {first.name} and {second.name}{added}"] = _against_rest(pair, 0, 0)
                continue
            # With two answers, one ratio is enough.
            for i, j in product(*(range(int(size == 2), size) for size in pair.shape[-2:])):
                what = f"{first.name} = {first.answers[i]} and {second.name} = {second.answers[j]}{added}"
                found[f"log odds ratio {what}"] = _against_rest(pair, i, j)
        return found

    def quantities(self, sites: Sites) -> dict[str, Quantity]:
        """Return Cramér's V and odds ratio of each two columns, and the second's shares given the first."""
        found: list[Quantity] = []
        for added, first, second, pair in self.pairs(self.law.shares(sites)):
            what = f"{first.name} and {second.name}{added}"
            words = f"Cramér's V of {what} (0: independent, 1: one says the other)"
            found.append(Quantity(f"Cramér's V {what}", words, cramers_v(pair)))
            if pair.shape[-2:] == (2, 2):
                odds = np.exp(_against_rest(pair, 0, 0))
                found.append(Quantity(f"odds ratio {what}", f"odds ratio of {what}", odds))
            given = pair / pair.sum(axis=-1, keepdims=True)
            of_two = len(second.answers) == 2
            for (i, one), (j, other) in product(enumerate(first.answers), enumerate(second.answers)):
                if not (of_two and j == 0):
                    name = f"{second.name} = {other} among {first.name} = {one}{added}"
                    found.append(Quantity(f"share {name}", f"share of {name}", given[..., i, j]))
        return by_name(found)


def _against_rest(pair: Values, i: int, j: int) -> Values:
    """Return the log odds ratio of cell (i, j) of a table (…, a, b), with other rows and columns merged."""
    both, row, column = pair[..., i, j], pair[..., i, :].sum(axis=-1), pair[..., :, j].sum(axis=-1)
    parts = both, pair.sum(axis=(-2, -1)) - row - column + both, row - both, column - both
    first, rest, *others = (np.log(np.maximum(part, TINY)) for part in parts)
    return np.asarray(first + rest - sum(others))


def cramers_v(pair: Values) -> Values:
    """Cramér's V of joint shares (…, a, b): √(φ² / (min(a, b) − 1))."""
    rows, columns = pair.sum(axis=-1, keepdims=True), pair.sum(axis=-2, keepdims=True)
    expected = rows * columns
    phi = np.sum((pair - expected) ** 2 / np.maximum(expected, 1e-300), axis=(-2, -1))
    return np.asarray(np.sqrt(phi / (min(pair.shape[-2:]) - 1)))
