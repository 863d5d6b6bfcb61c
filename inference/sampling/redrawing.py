"""Redrawing single coordinates from their prior, for posteriors that gradients cross badly.

Where a share may be nothing or something, its posterior is a narrow place beside a very wide one. Paths that
follow gradients seldom find the way between them; a jump from the prior, kept by Metropolis's rule, does. The
posterior stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from numpyro import handlers
from numpyro.distributions import Distribution
from numpyro.infer.util import constrain_fn

Arrays = Mapping[str, Array]
Potential = Callable[[Array, Arrays], Array]
# (vector, key, data) -> vector.
Redraw = Callable[[Array, Array, Arrays], Array]

# Coordinates redrawn in each transition, all of few as often as fits: each costs one likelihood.
MOST_REDRAWN = 16


def redrawing(
    program: Callable[..., None], site: str, unravel: Callable[[Array], Any], potential: Potential
) -> Redraw:
    """Redraws of the coordinates of `site`, unbounded and a priori independent given the other sites.

    unravel: vector -> {site: unbounded value}. potential: −log joint density of a vector.
    """

    def prior(vector: Array, data: Arrays) -> Distribution:
        values = constrain_fn(program, (), dict(data), unravel(vector))
        known = handlers.seed(handlers.substitute(program, data=values), jax.random.key(0))
        law: Distribution = handlers.trace(known).get_trace(**data)[site]["fn"]
        return law

    def redraw(vector: Array, key: Array, data: Arrays) -> Array:
        own = unravel(jnp.arange(len(vector), dtype=vector.dtype))[site].astype(int)
        law = prior(vector, data)
        draw_key, order_key, keep_key = jax.random.split(key, 3)
        sweeps = max(MOST_REDRAWN // len(own), 1)
        order = jax.random.permutation(order_key, len(own))[:MOST_REDRAWN]
        values = law.sample(draw_key, (sweeps,))[:, order].ravel()
        levels = jnp.log(jax.random.uniform(keep_key, values.shape))

        def misfit(at: Array) -> Array:
            """−log likelihood: of what differs in this site alone."""
            return potential(at, data) + law.log_prob(at[own])

        def one(state: tuple[Array, Array], proposal: tuple[Array, Array, Array]) -> Any:
            at, old = state
            place, value, level = proposal
            there = at.at[place].set(value)
            new = misfit(there)
            # What is not a number is never better.
            better = level < old - new
            return (jnp.where(better, there, at), jnp.where(better, new, old)), None

        proposals = jnp.tile(own[order], sweeps), values, levels
        return jax.lax.scan(one, (vector, misfit(vector)), proposals)[0][0]

    return redraw
