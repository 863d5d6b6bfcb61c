"""The registry of laws of an outcome, given a linear predictor: choices, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from scipy import stats

from inference.priors.laws import Stated, state

Own = Mapping[str, Any]
# The default prior sd of a coefficient times its column's sd, and of the intercept at the columns' means, on
# the logit scale: shares from 0.7 % to 99.3 % are within two sds.
LOGIT_SCALE = 2.5
# The same on the probit scale: divided by the ratio of the two densities at the middle.
PROBIT_SCALE = 1.6
SHAPE = state("gamma", shape=2.0, rate=0.1)


class Law(NamedTuple):
    """The law of an outcome.

    at: (linear predictors, own parameters) -> log P(choice) (…, choices) or, of a number, its distribution.
    below: (cuts, η, own parameters) -> P(number ≤ cut), None for a choice. log_link: whether a number's mean
    is exp(η). whole: whether it has whole numbers alone. private: whether the noisy reports of a clipped
    number have a likelihood. own: {further parameter: (its default prior, the chains' start)}. A number whose
    mean is η has an sd too, in the outcome's unit. scale: of default priors, in the outcome's unit.
    """

    at: Callable[[Array, Own], Any]
    below: Callable[[Any, Any, Own], Any] | None = None
    log_link: bool = False
    whole: bool = False
    private: bool = False
    own: Mapping[str, tuple[Stated, float]] = {}
    scale: float = LOGIT_SCALE


def _two(log_share: Callable[[Array], Array]) -> Callable[[Array, Own], Array]:
    """Return the law of two choices, from the log share of the second."""
    return lambda eta, _own: jnp.concatenate([log_share(-eta), log_share(eta)], axis=-1)


def _softmax(eta: Array, _own: Own) -> Array:
    return jax.nn.log_softmax(jnp.concatenate([jnp.zeros_like(eta[..., :1]), eta], axis=-1), axis=-1)


def _ordered(eta: Array, own: Own) -> Array:
    """P(choice ≤ j) = logistic(threshold j − η); differences of neighbours without cancelling."""
    upper = own["threshold"] - eta
    first, last = jax.nn.log_sigmoid(upper[..., :1]), jax.nn.log_sigmoid(-upper[..., -1:])
    high, low = upper[..., 1:], upper[..., :-1]
    # σ(h) − σ(l) = σ(h) σ(−l) (1 − exp(l − h)).
    between = jax.nn.log_sigmoid(high) + jax.nn.log_sigmoid(-low) + jnp.log(-jnp.expm1(low - high))
    return jnp.concatenate([first, between, last], axis=-1)


CHOICES: Mapping[str, Law] = {
    "logit": Law(_two(jax.nn.log_sigmoid)),
    "probit": Law(_two(jax.scipy.stats.norm.logcdf), scale=PROBIT_SCALE),
    "softmax": Law(_softmax),
    "ordered": Law(_ordered, own={"threshold": (state("normal", loc=0.0, scale=LOGIT_SCALE), 0.0)}),
}
NUMBERS: Mapping[str, Law] = {
    "normal": Law(
        lambda eta, own: dist.Normal(eta, own["sigma"]),
        lambda cuts, eta, own: stats.norm.cdf(cuts, eta, own["sigma"]),
        private=True,
    ),
    "student_t": Law(
        lambda eta, own: dist.StudentT(own["nu"], eta, own["sigma"]),
        lambda cuts, eta, own: stats.t.cdf(cuts, own["nu"], eta, own["sigma"]),
        own={"nu": (SHAPE, 10.0)},
    ),
    "exponential": Law(
        lambda eta, _own: dist.Exponential(jnp.exp(-eta)),
        lambda cuts, eta, _own: stats.expon.cdf(cuts, 0, np.exp(eta)),
        log_link=True,
        private=True,
    ),
    "poisson": Law(
        lambda eta, _own: dist.Poisson(jnp.exp(eta)),
        lambda cuts, eta, _own: stats.poisson.cdf(cuts, np.exp(eta)),
        log_link=True,
        whole=True,
        private=True,
    ),
    "negative_binomial": Law(
        lambda eta, own: dist.NegativeBinomial2(jnp.exp(eta), own["alpha"]),
        lambda cuts, eta, own: stats.nbinom.cdf(
            cuts, own["alpha"], own["alpha"] / (own["alpha"] + np.exp(eta))
        ),
        log_link=True,
        whole=True,
        private=True,
        own={"alpha": (SHAPE, 1.0)},
    ),
}
LAWS: Mapping[str, Law] = {**CHOICES, **NUMBERS}
