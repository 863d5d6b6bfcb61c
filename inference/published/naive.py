"""Noise-naive: noisy statistics taken for exact, made positive semidefinite (DPBLR II-B2).

The authors' code repairs the posterior's precision and its inverse each for itself, so that they are no
longer inverses, and raises the inverse gamma's rate to 0.1 at least. Here statistics are repaired once, as in
Gibbs-SS: then the rate is never below the prior's.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from inference.published import independent, non_private, requirements
from inference.published.given_grams import nearest_semidefinite
from inference.published.non_private import Summed
from inference.published.normal_inverse_gamma import draw_regression
from inference.published.prior_forms import IN_SDS


def _draw(key: Array, data: Summed) -> dict[str, Array]:
    sums, count, prior = data
    theta, variance = draw_regression(
        key, nearest_semidefinite(jnp.asarray(sums)), jnp.maximum(count, 1.0), prior
    )
    return {"theta": theta, "variance": variance}


NOTE = "naive takes the noise for data: its intervals are too narrow, however much noise there is"
KERNEL = independent.independent(_draw)


METHOD = independent.method(
    "naive",
    "DPBLR II-B2",
    requirements.all_of(requirements.unaveraged, requirements.moments, requirements.squares),
    KERNEL,
    non_private.summed,
    IN_SDS,
    (NOTE,),
)
