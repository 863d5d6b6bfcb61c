"""Regressions from signs of sampled products with public columns beside the private features.

In every public cell the features have a law whose means (log shares of levels) are linear in the public
columns, and the response's line is the private one plus the public columns'. That gives M = E[uuᵀ] in every
cell, and so the law of each cell's counts of signs.

Of features that are numbers as they are, a linear regression takes no law: its products of two fields are
counted over all cells together, and those of a field with the constant by cell. These are all that the best
linear prediction needs (its public columns' own second moments are known), so that nothing is assumed of
how spreads and correlations differ between cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from inference.analyses.linear import Linear
from inference.analyses.table import Codes, Values
from inference.likelihoods import ProductSigns
from inference.models.base import Draws, Model
from inference.models.clipping import beyond_bounds, clipping_notes, possible_clipping
from inference.models.leveled_cells import levels_of, margins, scales, shares_of_cells
from inference.models.leveled_regressions import effects, level_parameters, moments_on_levels, of_bins
from inference.models.product_cells import (
    PAIR,
    TAILS,
    cell_effects,
    cell_moments,
    normal_moments,
    parameters_of_moments,
    start_of_cells,
)
from inference.models.regression import Regression, Scale, regression, residual_sd
from inference.models.sampled_products import (
    features,
    moments_seen,
    positive_signs,
    second_moments,
    start,
)
from inference.priors.laws import vector_law
from inference.units import has_levels
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary

# Of a number's mean, beside its sd, along all independent directions of the public columns together.
ALONG = 0.7


@dataclass(frozen=True)
class Beside:
    """Public columns over cells, and what came from each cell.

    linear: the columns, centred. counts: (cells, 2 T) of signs.
    """

    linear: Linear
    counts: Codes

    @property
    def sizes(self) -> Codes:
        """Reports in each cell."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def names(self) -> list[str]:
        """Of the coefficients, as a record's are named: the level behind the term."""
        matrix = self.linear.matrix
        pairs = [(matrix.terms[column], matrix.levels[column]) for column in self.linear.columns]
        return [f"{term}={level}" if level else term for term, level in pairs]

    def standard(self) -> Values:
        """The columns with mean 0 and sd 1 over all reports, (cells, columns)."""
        columns = self.linear.matrix.values[:, 0, self.linear.columns]
        return np.asarray((columns - self.linear.middles) / self.linear.spreads)

    def directions(self) -> Values:
        """The same, uncorrelated, without those that nobody has: (cells, directions)."""
        rotated = self.linear.rotated[:, 0]
        return np.asarray(rotated[:, rotated.any(axis=0)])

    def slopes(self, drawn: Any, unit: Values) -> Any:
        """β of the columns, over `unit`, of draws (…, columns) of what has the priors, over `unit` too."""
        turn = self.linear.from_priors
        return drawn if turn is None else drawn @ (turn[0] / unit[:, None] * unit).T


Sampled = Callable[[Regression, Array, Array, Array], Array]


def regression_beside(question: Question, mechanism: SampledProducts, beside: Beside) -> Model:
    """The line of the record's features and public columns; priors of the public ones stand in `beside`."""
    moments = _moments_of(question, mechanism)
    scale = Scale(question)
    unit = scale.response.unit / beside.linear.spreads
    priors = [row[0] for row in beside.linear.priors]
    together = pooled(question, mechanism)

    def program(n: int, counts: Array, standard: Array, directions: Array, weights: Array) -> None:
        line = regression(question)
        public = numpyro.sample("public", vector_law(priors, 0 * unit, unit))
        at = line.intercept + standard @ beside.slopes(public, unit)
        second = moments(line, at, directions, weights)
        numpyro.deterministic("second", jnp.tensordot(weights, second, 1))
        numpyro.sample("reports", signs_by_cell(mechanism, second, weights, n, together), obs=counts)

    total = QuestionSummary(int(beside.counts.sum()), beside.counts.sum(axis=0))
    data = {
        "n": total.n,
        "counts": arranged(mechanism, beside.counts, together),
        "standard": beside.standard(),
        "directions": beside.directions(),
        "weights": beside.sizes / total.n,
    }
    notes = clipping_notes(question, moments_seen(mechanism, total)) if together.any() else ()
    model = Model(
        program,
        data,
        _start(question, mechanism, beside),
        partial(_parameters, question, mechanism, beside),
        notes,
        remarks=_remarks(question, mechanism, bool(notes)),
        shown=positive_signs,
    )
    return of_bins(question, mechanism, model) if has_levels(question) else model


def pooled(question: Question, mechanism: SampledProducts) -> Codes:
    """(T,): which products are counted over all cells together, 1 or 0."""
    moments_alone = not mechanism.binary and not has_levels(question)
    return np.asarray([moments_alone and i > 0 for i, _ in mechanism.coordinates], np.int64)


def signs_by_cell(
    mechanism: SampledProducts, second: Any, weights: Any, n: int, together: Codes
) -> ProductSigns:
    """The law of signs as `arranged` has them, given M (cells, d + 2, d + 2) and cells' shares of reports."""
    first, other = np.asarray(mechanism.coordinates).T
    drawn = np.asarray(mechanism.weights) / mechanism.total
    means = second[:, first, other]
    whole, apart = np.flatnonzero(together), np.flatnonzero(1 - together)
    over_all = jnp.tensordot(weights, means[:, whole], 1)
    shares = [drawn[whole], (weights[:, None] * drawn[apart]).ravel()]
    return ProductSigns(
        jnp.concatenate([over_all, means[:, apart].ravel()]),
        jnp.concatenate([jnp.asarray(one) for one in shares]),
        float(mechanism.gain),
        n,
    )


def arranged(mechanism: SampledProducts, counts: Codes, together: Codes) -> Codes:
    """Counts (cells, 2 T) in one row: products over all cells, then of each cell the others."""
    signs = counts.reshape(len(counts), len(mechanism.coordinates), 2)
    over_all = signs[:, together == 1].sum(axis=0)
    return np.concatenate([over_all.ravel(), signs[:, together == 0].ravel()])


def _moments_of(question: Question, mechanism: SampledProducts) -> Sampled:
    """Inside a program: from the line, its height in each cell, directions and weights M of each cell."""
    if has_levels(question):
        return partial(_of_levels, question, mechanism)
    if mechanism.binary and not any(field.bounds for field in question.features):
        return _of_yes_no
    return partial(_of_numbers, question, mechanism.binary)


def _of_yes_no(line: Regression, at: Array, directions: Array, _weights: Array) -> Array:
    d = len(line.coefficients)
    main, pair = cell_effects(d)
    mains = main + directions @ _tilt(directions, PAIR * np.ones(d))
    return jax.vmap(lambda at, main: cell_moments(at, line.coefficients, main, pair))(at, mains)


def _of_levels(
    question: Question,
    mechanism: SampledProducts,
    line: Regression,
    at: Array,
    directions: Array,
    weights: Array,
) -> Array:
    fields = levels_of(mechanism)
    main, pair = effects(fields)
    mains = main + directions @ _tilt(directions, PAIR * scales(fields)[0])
    laws = jax.vmap(lambda main: shares_of_cells(fields, main, pair))(mains)
    numpyro.deterministic("shares", jnp.concatenate(margins(jnp.tensordot(weights, laws, 1))))
    sd = None if mechanism.binary else residual_sd(question)
    return jax.vmap(
        lambda at, law: moments_on_levels(
            fields, law, Regression(at, line.coefficients), sd, question.interactions
        )
    )(at, laws)


def _of_numbers(
    question: Question, binary: bool, line: Regression, at: Array, directions: Array, _weights: Array
) -> Array:
    """Of features by their moments: `feature_sd` is over all cells, correlations are within them."""
    mean, covariance = features(question)
    size = directions.shape[1]
    law = dist.Normal(0, ALONG / np.sqrt(size)).expand([size, len(mean)]).to_event(2)
    along = numpyro.sample("along", law)
    within = 1 / jnp.sqrt(1 + jnp.sum(along**2, axis=0))
    means = mean + directions @ along * (jnp.sqrt(jnp.diagonal(covariance)) * within)
    covariance = covariance * jnp.outer(within, within)
    if binary:
        each = partial(normal_moments, coefficients=line.coefficients, covariance=covariance, numpy=jnp)
    else:
        sd = residual_sd(question)
        each = partial(
            second_moments, coefficients=line.coefficients, covariance=covariance, sd=sd, numpy=jnp
        )
    return jax.vmap(lambda at, mean: each(at, mean=mean))(at, means)


def _tilt(directions: Array, sizes: Values) -> Array:
    """How the effects on log shares move along the public columns, (directions, effects)."""
    law = dist.StudentT(TAILS, 0, sizes).expand([directions.shape[1], len(sizes)]).to_event(2)
    return numpyro.sample("tilt", law)


def _start(question: Question, mechanism: SampledProducts, beside: Beside) -> dict[str, object]:
    """No slope, and features that are alike in all cells."""
    size = beside.directions().shape[1]
    found: dict[str, object] = {"public": np.zeros(len(beside.names))}
    if has_levels(question):
        alone, pairs = (len(values) for values in scales(levels_of(mechanism)))
        found |= {"intercept": 0.0, "coefficients": np.zeros(len(Scale(question).all_names))}
        found |= {"main": np.zeros(alone), "tilt": np.zeros((size, alone))}
        # One field has no such site.
        found |= {"pair": np.zeros(pairs)} if pairs else {}
    elif mechanism.binary and not any(field.bounds for field in question.features):
        d = len(question.features)
        found |= {**start_of_cells(d), "tilt": np.zeros((size, d))}
    else:
        found |= {**start(question), "along": np.zeros((size, len(question.features)))}
    return found if mechanism.binary else {**found, "sd": 0.5}


def _parameters(
    question: Question, mechanism: SampledProducts, beside: Beside, draws: Draws
) -> dict[str, Values]:
    """As without public columns, with these behind the features; the intercept where all are 0."""
    named = (
        level_parameters(question, mechanism, draws)
        if has_levels(question)
        else parameters_of_moments(question, draws)
    )
    unit = Scale(question).response.unit / beside.linear.spreads
    slopes = beside.slopes(draws["public"], unit) * unit
    found = {"intercept": named.pop("intercept") - slopes @ beside.linear.middles}
    private = [f"coefficient[{name}]" for name in Scale(question).all_names]
    found |= {name: named.pop(name) for name in private}
    found |= {f"coefficient[{name}]": slopes[..., place] for place, name in enumerate(beside.names)}
    return {**found, **named}


def _remarks(
    question: Question, mechanism: SampledProducts, noted: bool
) -> Callable[[Draws], tuple[str, ...]]:
    """What the draws leave possible of features that the bounds clip; over cells there is nothing to say."""
    if has_levels(question) or noted:
        return lambda _draws: ()
    if not mechanism.binary:
        return partial(possible_clipping, question)
    if any(field.bounds for field in question.features):
        return partial(beyond_bounds, question)
    return lambda _draws: ()
