"""Turn a table and a formula into an analysis that can be sampled."""

from math import prod
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.families import (
    Outcome,
    OwnParameters,
    choice_outcome,
    number_outcome,
    private_number_outcome,
)
from inference.analyses.formula import Formula, Varying, parse
from inference.analyses.linear import Linear, Scales, linear_of
from inference.analyses.matrices import (
    combinations,
    matrix_of,
    variables,
    without,
)
from inference.analyses.open_shares import OpenShares
from inference.analyses.parameter_names import refuse_clashes
from inference.analyses.program import Assembled
from inference.analyses.stated_priors import Given
from inference.analyses.table import Private, Table, Values
from inference.analyses.varying import Group, groups_of, levels_of
from inference.default_priors import LOGIT_SCALE
from ldp_client.documents.errors import InputError

# The most numbers that a likelihood holds at a time: 2.4 GB.
MOST_TERMS = 300_000_000
MOST_LEVELS = 100


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
    cutpoints, dimension = bool(outcome.cutpoints), f"{formula.outcome}_reduced_dim"
    labels = (outcome.outputs, outcome.start, "", dimension)
    law = linear_of("law", matrix, table.sizes, outcome.scales, given, *labels, cutpoints=cutpoints)
    if not (law.intercept or len(law.columns) or cutpoints or formula.varying):
        raise InputError("the right side of the formula is empty", code="formula.empty_right_side")
    own = OwnParameters(outcome, given, law)
    unit = outcome.scales.coefficient / LOGIT_SCALE
    groups = groups_of(formula.varying, table, predictors, outcome.outputs, given, unit, dimension=dimension)
    shares, shares_groups = _shares_of(formula, table, predictors, given)
    opened = OpenShares([*([response] if response else []), *predictors], given)
    given.refuse_others()
    laws = (law, groups, shares, shares_groups, own, opened)
    found = Assembled(formula, outcome, response, predictors, table, *laws, values)
    refuse_clashes(found.entries)
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


def _outcome_of(name: str, table: Table, family: str | None) -> tuple[Outcome, Values | None]:
    """Return the outcome's law and, if the outcome is public, its values."""
    response = table.private.get(name)
    if response is not None and response.number is not None:
        return private_number_outcome(name, response.number, family), None
    if response is not None:
        return choice_outcome(response.answers, response.ordered, family), None
    column = table.public[name]
    if _is_number(column, family):
        values = column.to_numpy(np.float64)
        return number_outcome(name, values, table.counts.astype(np.float64), family), values
    codes, levels = levels_of(column)
    if not 2 <= len(levels) <= MOST_LEVELS:
        raise InputError(
            f"{name} has {len(levels)} different values: an outcome of choices has 2 to {MOST_LEVELS}",
            code="formula.outcome_level_count_unfit",
        )
    ordered = isinstance(column.dtype, pd.CategoricalDtype) and bool(column.cat.ordered)
    return choice_outcome(levels, ordered, family), codes.astype(np.float64)


def _is_number(column: pd.Series, family: str | None) -> bool:
    """Return True if a public outcome is a number. 0 and 1 alone are no and yes."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    if family is None:
        return not set(column.unique()) <= {0, 1}
    return family not in ("logit", "probit", "softmax", "ordered")


def _shares_of(
    formula: Formula, table: Table, predictors: tuple[Private, ...], given: Given
) -> tuple[Linear | None, tuple[Group, ...]]:
    """Return the private predictors' law: a share for each combination of answers, by the public terms."""
    if not predictors:
        return None, ()
    names = [one.name for one in predictors]
    lead, outputs = ":".join(names) + "_", tuple(map(", ".join, combinations(predictors)))[1:]
    side = without(formula.fixed, [*map(str, table.frame.columns), *names], names)
    public, scales = matrix_of(side, table.frame, (), table.sizes), Scales(LOGIT_SCALE, LOGIT_SCALE)
    labels = (outputs, np.zeros(len(outputs)), lead, f"{lead}dim")
    shares = linear_of("shares", public, table.sizes, scales, given, *labels)
    varying = [Varying(group, "1") for group in dict.fromkeys(one.group for one in formula.varying)]
    return shares, groups_of(varying, table, (), outputs, given, 1.0, lead, f"{lead}dim", "shares_")
