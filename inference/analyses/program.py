"""A formula over a table as a NumPyro program, and its draws as parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
from jax import Array
from numpy.typing import DTypeLike

from inference.analyses import families, likelihood
from inference.analyses.formula import Formula, Labels, Parameter, Varying, by_name, parse, refuse_twice
from inference.analyses.linear import Linear, linear_of
from inference.analyses.matrices import combinations, matrix_of, variables, without
from inference.analyses.public_columns import is_number
from inference.analyses.stated_priors import Given, is_flat
from inference.analyses.table import Private, Table, Values
from inference.analyses.varying import Group, groups_of, levels_of
from inference.default_priors import LOGIT_SCALE
from inference.laws import CHOICES
from inference.models.base import Draws
from inference.priors.laws import Stated
from inference.results.tree import Axis
from ldp_client.documents.errors import InputError

# The most numbers that a likelihood holds at a time: 2.4 GB.
MOST_TERMS = 300_000_000
MOST_LEVELS = 100
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
    outcome: families.Outcome
    response: Private | None
    predictors: tuple[Private, ...]
    table: Table
    law: Linear
    groups: tuple[Group, ...]
    shares: Linear | None
    shares_groups: tuple[Group, ...]
    own: families.OwnParameters
    opened: families.OpenShares
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
    def parts(self) -> tuple[Linear | Group | families.OwnParameters | families.OpenShares, ...]:
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
        return likelihood.rows_of(columns[self.table.cell], vectors, counts, dtype)

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
            rows = likelihood.Rows(data["row_columns"], data["row_vectors"], data["row_counts"])
            numpyro.factor("reports", likelihood.log_of_rows(both, rows))
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
        law_of_number = self.outcome.law.at(likelihood.placed(eta, data["cell"])[..., 0], own)
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
        predictors = likelihood.joint([jnp.ones((len(self.table.cell), 1)), *own])
        if not self.outcome.answers:
            return likelihood.log_public(data["cell"], predictors, log_shares, log_law)
        if self.response is not None:
            return likelihood.log_private(data["cell"], predictors, log_shares, log_law, vectors[0])
        chosen = data["values"].astype(int)
        of_patterns = likelihood.placed(log_law, data["cell"])
        picked = jnp.take_along_axis(of_patterns, chosen[:, None, None], axis=2)[:, :, 0]
        return likelihood.log_public(data["cell"], predictors, log_shares, picked)

    @cached_property
    def entries(self) -> list[Parameter]:
        """Return all parameters, in the order of `parameters`."""
        return [one for part in self.parts for one in part.entries]

    def parameters(self, draws: Draws) -> dict[str, Values]:
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
            output = part.labels.dimension
            silent = {one.coordinates[output] for one in part.entries if one.name in found}
            found |= {one.name for one in part.entries if not one.own and one.coordinates[output] in silent}
        if self.outcome.cutpoints and (found or is_flat(self.own.priors["threshold"])):
            found |= {one.name for one in self.own.entries}
        return found


def assemble(table: Table, text: str, priors: Any = None, family: str | None = None) -> Assembled:
    """Build the analysis of a formula over a table.

    priors: "flat", or {parameter: distribution}. Raises InputError, with the reason, if it cannot be fitted.
    """
    formula, given = parse(text, table.names), Given(priors)
    private, public = _right_side(formula, table)
    is_private = formula.outcome in table.private
    reported = [*([formula.outcome] if is_private else []), *private]
    table = table.only(public, reported, None if is_private else formula.outcome)
    response = table.private.get(formula.outcome)
    predictors = tuple(table.private[name] for name in private)
    outcome, values = _outcome_of(formula.outcome, table, family)
    combined = prod(len(one.answers) for one in predictors)
    if len(table.counts) * combined * max(len(outcome.answers), 1) > MOST_TERMS:
        raise InputError(
            f"{len(table.counts):,} patterns of reports and {combined:,} combinations of private answers do "
            "not fit into memory: use fewer private predictors, or coarser public columns",
            code="fit.too_large_for_memory",
        )
    matrix = matrix_of(formula.fixed, table.frame, predictors, table.sizes)
    labels, cutpoints = Labels(outcome.outputs, f"{formula.outcome}_reduced_dim"), bool(outcome.cutpoints)
    law = linear_of("law", matrix, table.sizes, outcome.scale, outcome.loc, given, labels, cutpoints)
    if not (law.intercept or len(law.columns) or cutpoints or formula.varying):
        raise InputError("the right side of the formula is empty", code="formula.empty_right_side")
    own = families.OwnParameters(outcome, given, law)
    groups = groups_of(formula.varying, table, predictors, given, labels, outcome.scale / LOGIT_SCALE)
    shares, shares_groups = _shares_of(formula, table, predictors, given)
    opened = families.OpenShares([*([response] if response else []), *predictors], given)
    given.refuse_others()
    laws = (law, groups, shares, shares_groups, own, opened)
    found = Assembled(formula, outcome, response, predictors, table, *laws, values)
    by_name(found.entries)
    # One variable has the same dimensions everywhere.
    refuse_twice(name for name, *_ in {(one.variable, *one.axis.coordinates) for one in found.entries})
    return found


def _right_side(formula: Formula, table: Table) -> tuple[list[str], list[str]]:
    """Return the private predictors and the public columns on the right side."""
    named = set(variables(formula.fixed, table.names))
    for one in formula.varying:
        named |= {*variables(one.expression, table.names), one.group}
        if one.group in table.private:
            raise InputError(
                f"(… | {one.group}): {one.group} is private, and groups must be public",
                code="formula.private_group",
            )
    if formula.outcome in named:
        raise InputError(
            f"{formula.outcome} is on both sides of the formula", code="formula.outcome_on_both_sides"
        )
    private = [name for name in table.private if name in named]
    for name in private:
        if table.private[name].number is not None:
            raise InputError(
                f"{name} is a private number, which cannot be a predictor. Ask the question as a "
                "choice of bands.",
                code="formula.private_number_predictor",
            )
    return private, [str(name) for name in table.public.columns if name in named]


def _outcome_of(name: str, table: Table, family: str | None) -> tuple[families.Outcome, Values | None]:
    """Return the outcome's law and, if the outcome is public, its values."""
    response = table.private.get(name)
    if response is not None and response.number is not None:
        return families.private_number_outcome(name, response.number, family), None
    if response is not None:
        return families.choice_outcome(response.answers, response.ordered, family), None
    column = table.public[name]
    # 0 and 1 alone are no and yes.
    is_coded = set(column.unique()) <= {0, 1} if family is None else family in CHOICES
    if is_number(column) and not is_coded:
        values = column.to_numpy(np.float64)
        return families.number_outcome(name, values, table.counts.astype(np.float64), family), values
    codes, levels = levels_of(column)
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise InputError(
            f"{name} has {len(levels)} different values: an outcome of choices has 2 to {MOST_LEVELS}",
            code="formula.outcome_level_count_unfit",
        )
    ordered = isinstance(column.dtype, pd.CategoricalDtype) and bool(column.cat.ordered)
    return families.choice_outcome(levels, ordered, family), codes.astype(np.float64)


def _shares_of(
    formula: Formula, table: Table, predictors: tuple[Private, ...], given: Given
) -> tuple[Linear | None, tuple[Group, ...]]:
    """Return the private predictors' law: a share for each combination of answers, by the public terms."""
    if not predictors:
        return None, ()
    names = [one.name for one in predictors]
    lead = ":".join(names) + "_"
    labels = Labels(tuple(map(", ".join, combinations(predictors)))[1:], f"{lead}dim", lead)
    side = without(formula.fixed, [*map(str, table.frame.columns), *names], names)
    public = matrix_of(side, table.frame, (), table.sizes)
    shares = linear_of("shares", public, table.sizes, LOGIT_SCALE, 0.0, given, labels)
    varying = [Varying(group, "1") for group in dict.fromkeys(one.group for one in formula.varying)]
    return shares, groups_of(varying, table, (), given, labels, site="shares_")
