"""Regressions from the signs of sampled products of features with levels, exact over the cells."""

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
from inference.models.sampled_products import few_reports, signed_summaries, signs_of
from inference.results.diagnostics import listed
from ldp_client.documents.question import Field
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]
# Prior of effects on log shares of cells: factors of the effects' scales for main effects and for pairs, and
# the degrees of freedom of Student's t for both.
MAIN, PAIR, TAILS = 1.0, 0.5, 4.0


def regression_on_levels(question: Question, mechanism: SampledProducts, summary: QuestionSummary) -> Model:
    """Model the mean or log odds as intercept + coefficients·x, with x the levels' columns and numbers."""
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
        summaries=signed_summaries(mechanism, summary, lambda sites: sites["second"]),
    )


def notes_of_bins(question: Question) -> tuple[str, ...]:
    """Return a note that reports do not show an answer's position within its bin."""
    cut = listed([field.id for field in question.features if field.cuts])
    note = (
        f"within its bins the line takes {cut} as spread smoothly, which reports cannot confirm: if "
        "people answer whole or round numbers, cut halfway between them"
    )
    return (note,) if cut else ()


def effects(fields: list[Levels]) -> tuple[Array, Any]:
    """Draw the main effects of fields and the effects of pairs on log shares."""
    alone, pairs = scales(fields)
    main = numpyro.sample("main", dist.StudentT(TAILS, 0, MAIN * alone).to_event(1))
    # One field has no pairs.
    pair = numpyro.sample("pair", dist.StudentT(TAILS, 0, PAIR * pairs).to_event(1)) if len(pairs) else pairs
    return main, pair


def moments_on_levels(fields: list[Levels], law: Array, line: Regression, sd: Any) -> Array:
    """Return M = E[uuᵀ] of entries and response; sd: the residual sd, None for a yes/no response."""
    value, spread = line_in_cells(fields, law, line)
    if sd is None:
        return second_moments(fields, law, logistic_response(value, spread), 1.0)
    return second_moments(fields, law, value, jnp.sum(law * (value**2 + spread)) + sd**2)


def level_parameters(question: Question, mechanism: SampledProducts, draws: Draws) -> dict[str, Values]:
    """Return the line's parameters, R² of a number, and shares of choices, of numbers' bins and of yes."""
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
    """Return a number's bins in words, from bound to bound."""
    assert field.bounds is not None
    ends = [f"{float(end):.15g}" for end in (field.bounds[0], *field.cuts, field.bounds[1])]
    return [f"{low} to {high}" for low, high in pairwise(ends)]
