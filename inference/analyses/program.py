"""An analysis as a NumPyro program, and its draws as parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import DTypeLike

from inference.analyses.families import Outcome, OwnParameters
from inference.analyses.formula import Formula
from inference.analyses.likelihood import Rows, joint, log_of_rows, log_private, log_public, placed, rows_of
from inference.analyses.linear import Linear
from inference.analyses.open_shares import OpenShares
from inference.analyses.parameter_names import Parameter, Parameters
from inference.analyses.stated_priors import is_flat
from inference.analyses.table import Private, Table, Values
from inference.analyses.varying import Group
from inference.models.base import Draws
from inference.priors.laws import Stated
from inference.results.tree import Axis

# Patterns × choices. Below it, each law is computed once for its cell, and compiles faster.
FROM_ROWS = 50_000


@dataclass(frozen=True)
class Assembled:
    """A formula over a table, ready to be sampled.

    response: the private outcome, None if it is public. predictors: the private predictors. law: the
    outcome's linear predictor; groups: its varying terms. shares, shares_groups: the same for the joint law
    of the predictors' answers, None without any. opened: the shares that channels leave open.
    values: (patterns,) of a public outcome: numbers, or indices of choices.
    """

    formula: Formula
    outcome: Outcome
    response: Private | None
    predictors: tuple[Private, ...]
    table: Table
    law: Linear
    groups: tuple[Group, ...]
    shares: Linear | None
    shares_groups: tuple[Group, ...]
    own: OwnParameters
    opened: OpenShares
    values: Values | None = None

    @property
    def privates(self) -> tuple[Private, ...]:
        """Return the private columns that the formula names, the outcome first."""
        return (*([self.response] if self.response else []), *self.predictors)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Return the outcome's linear predictor, then the linear predictor of the predictors' law."""
        return (self.law, *([self.shares] if self.shares is not None else []))

    @property
    def every_group(self) -> tuple[Group, ...]:
        """Return all varying terms: of the outcome's law, then of the predictors' law."""
        return (*self.groups, *self.shares_groups)

    @property
    def predictions(self) -> tuple[Linear | Group, ...]:
        """Return all parts of linear predictors, the outcome's first."""
        return (self.law, *self.groups, *self.linears[1:], *self.shares_groups)

    @property
    def parts(self) -> tuple[Linear | Group | OwnParameters | OpenShares, ...]:
        """Return all parts that have parameters."""
        return (self.law, self.own, *self.predictions[1:], self.opened)

    @property
    def by_rows(self) -> bool:
        """Return True if products of rows are faster: for many different reports of a choice."""
        of_choice = self.response is not None and self.outcome.name in ("logit", "softmax")
        varies = self.groups or self.predictors or self.opened.weights
        return of_choice and not varies and len(self.table.counts) * len(self.outcome.answers) >= FROM_ROWS

    def data(self, dtype: DTypeLike = np.float64) -> dict[str, Any]:
        """Return the program's data. dtype: of rows, if rows are used."""
        if not self.by_rows or self.response is None:
            return self.data_of_patterns()
        columns, counts = self.law.standard[:, 0], self.table.counts.astype(np.float64)
        if self.law.intercept:
            columns = np.concatenate([columns, np.ones((len(columns), 1))], axis=1)
        vectors = self.response.choices.vectors[0, self.response.codes]
        return rows_of(columns[self.table.cell], vectors, counts, dtype)

    def data_of_patterns(self) -> dict[str, Any]:
        """Return the data with which `each` computes the probability of each pattern."""
        counts = self.table.counts.astype(np.float64)
        found: dict[str, Any] = {"cell": self.table.cell, "counts": counts}
        for part in self.predictions:
            found |= part.data()
        for place, one in enumerate(self.privates):
            if one.number is not None:
                found["numbers"] = one.number.reports[one.codes]
            else:
                found[f"leaves_{place}"] = one.choices.vectors[:, one.codes]
        if self.values is not None:
            found["values"] = self.values
        return found

    def initial(self) -> dict[str, object]:
        """Return the start."""
        return {name: value for part in self.parts for name, value in part.initial().items()}

    def program(self, **data: Array) -> None:
        """Run the NumPyro program of the analysis."""
        if "row_counts" in data:
            slopes, middle = self.law.drawn()
            both = slopes if middle is None else jnp.concatenate([slopes, middle[None]])
            rows = Rows(data["row_columns"], data["row_vectors"], data["row_counts"])
            numpyro.factor("reports", log_of_rows(both, rows))
            return
        log_law, log_shares, shares = self.drawn(data)
        numpyro.factor("reports", jnp.sum(data["counts"] * self.each(data, log_law, log_shares, shares)))

    def drawn(self, data: dict[str, Array]) -> tuple[Array, Array | None, dict[str, Array]]:
        """Sample, in a program, the outcome's law, the predictors' log shares, and channels' open shares."""
        eta = self.law.draw(data)
        for group in self.groups:
            eta += group.draw(data)
        own, log_shares = self.own.draw(), None
        if self.shares is not None:
            others = self.shares.draw(data)[:, 0]
            for group in self.shares_groups:
                others += group.draw(data)[:, 0]
            logits = jnp.concatenate([jnp.zeros_like(others[:, :1]), others], axis=1)
            log_shares = jax.nn.log_softmax(logits, axis=1)
        shares = self.opened.draw()
        if self.outcome.answers:
            return self.outcome.law.at(eta, own), log_shares, shares
        law_of_number = self.outcome.law.at(placed(eta, data["cell"])[..., 0], own)
        number = self.response.number if self.response is not None else None
        if number is not None:
            return number.log_density(law_of_number, data["numbers"][:, None]), log_shares, shares
        return law_of_number.log_prob(data["values"][:, None]), log_shares, shares

    def each(
        self, data: dict[str, Array], log_law: Array, log_shares: Array | None, shares: Mapping[str, Array]
    ) -> Array:
        """Return the log-likelihood (patterns,) of each pattern."""
        vectors = {
            place: one.choices.mixed(data[f"leaves_{place}"], shares)
            for place, one in enumerate(self.privates)
            if one.number is None
        }
        first = len(self.privates) - len(self.predictors)
        own = [vectors[place] for place in range(first, len(self.privates))]
        predictors = joint([jnp.ones((len(self.table.cell), 1)), *own])
        if not self.outcome.answers:
            return log_public(data["cell"], predictors, log_shares, log_law)
        if self.response is not None:
            return log_private(data["cell"], predictors, log_shares, log_law, vectors[0])
        chosen = data["values"].astype(int)
        of_patterns = placed(log_law, data["cell"])
        picked = jnp.take_along_axis(of_patterns, chosen[:, None, None], axis=2)[:, :, 0]
        return log_public(data["cell"], predictors, log_shares, picked)

    @cached_property
    def entries(self) -> list[Parameter]:
        """Return all parameters, in the order of `parameters`."""
        return [one for part in self.parts for one in part.entries]

    def parameters(self, draws: Draws) -> Parameters:
        """Return {parameter: draws}, named as in bambi, in the columns' own units."""
        whole = np.concatenate([part.values(draws) for part in self.parts if part.entries], axis=-1)
        return {one.name: whole[..., place] for place, one in enumerate(self.entries)}

    def axes(self) -> dict[str, Axis]:
        """Return {parameter: its place in ArviZ's groups}, for parameters with coordinates."""
        return {one.name: one.axis for one in self.entries if one.axis.coordinates}

    def priors(self) -> dict[str, Stated]:
        """Return {parameter: its prior}."""
        return {one.name: one.prior for one in self.entries if one.prior is not None}

    def without_prior(self) -> set[str]:
        """Return the names of parameters without a proper prior, whose prior draws are placeholders."""
        found = {name for name, prior in self.priors().items() if is_flat(prior)}
        for part in self.linears:
            silent = {one.coordinates[part.dimension] for one in part.entries if one.name in found}
            found |= {
                one.name for one in part.entries if not one.own and one.coordinates[part.dimension] in silent
            }
        if self.outcome.cutpoints and (found or is_flat(self.own.priors["threshold"])):
            found |= {one.name for one in self.own.entries}
        return found
