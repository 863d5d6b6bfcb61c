"""Whether a private number's quadrature is fine enough for the posterior, beside one twice as fine."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from inference.analyses.matrices import Matrix, again, combinations
from inference.analyses.number_predictors import NumberLaw, Quadrature, as_predictor
from inference.analyses.program import Assembled
from inference.analyses.table import Private, Values
from inference.models.base import Draws

# Of a log-likelihood: what moves no interval.
MOST_OFF = 0.1
COMPARED = 3


def unresolved(analysis: Assembled, sites: Draws) -> tuple[str, ...]:
    """Why the posterior (chains, draws, …) is not to be believed, where a finer quadrature says otherwise."""
    if analysis.number is None:
        return ()
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in sites.items()}
    places = np.linspace(0, len(next(iter(flat.values()))) - 1, COMPARED).astype(int)
    some = {name: values[places] for name, values in flat.items()}
    off = np.abs(_log_likelihoods(analysis, some) - _log_likelihoods(refined(analysis, 2), some)).max()
    if off <= MOST_OFF:
        return ()
    name = analysis.number.column.name
    return (
        f"the law of {name}, or what depends on it, is too narrow beside its bounds, or has a jump: "
        f"log-likelihoods are off by {off:.2g}; ask again with narrower bounds, or for its bands as a choice",
    )


def _log_likelihoods(analysis: Assembled, sites: Draws) -> Values:
    """One for each draw."""
    with jax.enable_x64(True):
        data = {name: jnp.asarray(value) for name, value in analysis.data().items()}

        def of(own: dict[str, jax.Array]) -> jax.Array:
            with handlers.seed(rng_seed=0), handlers.substitute(data=own):
                return jnp.sum(data["counts"] * analysis.each(data, *analysis.drawn(data)))

        moved = {name: jnp.asarray(values, jnp.float64) for name, values in sites.items()}
        return np.asarray(jax.lax.map(of, moved))


def refined(analysis: Assembled, finer: int) -> Assembled:
    """The same analysis, parameters and all, with so many times as many panels."""
    number = analysis.number
    assert number is not None
    column = as_predictor(number.source, finer)
    predictors = (*number.choices, column)
    law = analysis.law
    matrix = _over(law.matrix, analysis, predictors)
    rotated = (matrix.values[:, :, law.columns] - law.middles) / law.spreads @ law.unrotation
    groups = tuple(replace(one, matrix=_over(one.matrix, analysis, predictors)) for one in analysis.groups)
    return replace(
        analysis,
        predictors=predictors,
        law=replace(law, matrix=matrix, rotated=rotated),
        groups=groups,
        number=_finer(number, column, finer),
    )


def _finer(number: NumberLaw, column: Private, finer: int) -> NumberLaw:
    assert column.channel is not None
    return replace(number, column=column, own=Quadrature.of(column.channel, finer))


def _over(matrix: Matrix, analysis: Assembled, predictors: tuple[Private, ...]) -> Matrix:
    """The matrix over the places of other predictors."""
    own = replace(matrix, combinations=combinations(predictors))
    return replace(own, values=again(own, analysis.cells.frame, predictors))
