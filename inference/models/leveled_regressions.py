"""Regressions from the signs of sampled products whose features have levels: exact over their cells."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray

from inference.models.base import Draws, Model
from inference.models.leveled_cells import (
    Levels,
    levels_of,
    line_in_cells,
    logistic_response,
    margins,
    scales,
    second_moments,
    shares_by_field,
    shares_of_cells,
)
from inference.models.regression import Regression, Scale, regression, residual_sd
from inference.models.sampled_products import few_reports, positive_signs, replicated, signs_of
from inference.results.diagnostics import listed
from ldp_client.documents.study import Field
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]
# Of log shares of cells, beside the scales of effects: scale for a field alone and for a pair; and how heavy
# the tails of both are (Student's t).
MAIN, PAIR, TAILS = 1.0, 0.5, 4.0


def regression_on_levels(question: Question, mechanism: SampledProducts, summary: QuestionSummary) -> Model:
    """The response's mean or log-odds is intercept + coefficients·x, x the levels' columns and numbers."""
    fields = levels_of(mechanism)
    alone, pairs = (len(values) for values in scales(fields))

    def program(n: int, counts: Array) -> None:
        line = regression(question)
        law = shares_of_cells(fields, *effects(fields))
        sd = None if mechanism.binary else residual_sd(question)
        found = moments_on_levels(fields, law, line, sd)
        second = numpyro.deterministic("second", found)
        numpyro.deterministic("shares", jnp.concatenate(margins(law)))
        numpyro.sample("reports", signs_of(mechanism, second, n), obs=jnp.asarray(counts))

    initial: dict[str, object] = {
        "intercept": 0.0,
        "coefficients": np.zeros(len(Scale(question).names)),
        "main": np.zeros(alone),
    }
    if pairs:
        initial["pair"] = np.zeros(pairs)
    if not mechanism.binary:
        initial["sd"] = 0.5
    data = {"n": summary.n, "counts": summary.values}
    return Model(
        program,
        data,
        initial,
        partial(level_parameters, question, mechanism),
        (*few_reports(mechanism, summary), *notes_of_bins(question)),
        replicates=replicated(mechanism, summary, lambda sites: sites["second"]),
        shown=positive_signs,
    )


def notes_of_bins(question: Question) -> tuple[str, ...]:
    """What no report tells: where within its bin an answer lies."""
    cut = listed([field.id for field in question.features if field.cuts])
    note = (
        f"within its bins the line takes {cut} as spread smoothly, which no report tells: where people say "
        "whole or round numbers, cut halfway between them"
    )
    return (note,) if cut else ()


def effects(fields: list[Levels]) -> tuple[Array, Any]:
    """Draw the effects of fields alone, and those of pairs, on log shares."""
    alone, pairs = scales(fields)
    main = numpyro.sample("main", dist.StudentT(TAILS, 0, MAIN * alone).to_event(1))
    # None of one field.
    pair = numpyro.sample("pair", dist.StudentT(TAILS, 0, PAIR * pairs).to_event(1)) if len(pairs) else pairs
    return main, pair


def moments_on_levels(fields: list[Levels], law: Array, line: Regression, sd: Any) -> Array:
    """M = E[uuᵀ] of entries and response; sd: of a number as response, None of a yes/no."""
    value, spread = line_in_cells(fields, law, line)
    if sd is None:
        return second_moments(fields, law, logistic_response(value, spread), 1.0)
    return second_moments(fields, law, value, jnp.sum(law * (value**2 + spread)) + sd**2)


def level_parameters(question: Question, mechanism: SampledProducts, draws: Draws) -> dict[str, Values]:
    """The line; shares of choices, of numbers' bins and of yes."""
    scale = Scale(question)
    named = scale.parameters(draws)
    if "sd" in draws:
        mean, square = draws["second"][..., 0, -1], draws["second"][..., -1, -1]
        named["r_squared"] = 1 - (draws["sd"] ** 2 / np.maximum(square - mean**2, 1e-12))
    each = shares_by_field(levels_of(mechanism), draws["shares"])
    for asked, shares in zip(question.features, each, strict=True):
        if asked.choices or asked.cuts:
            levels = enumerate(asked.choices or bins_of(asked))
            named |= {f"share[{asked.id}={label}]": shares[..., place] for place, label in levels}
        else:
            named[f"mean[{asked.id}]"] = shares[..., 1]
    return named


def bins_of(field: Field) -> list[str]:
    """A number's bins as words, from bound to bound."""
    assert field.bounds is not None
    ends = [f"{float(end):.15g}" for end in (field.bounds[0], *field.cuts, field.bounds[1])]
    return [f"{low} to {high}" for low, high in pairwise(ends)]
