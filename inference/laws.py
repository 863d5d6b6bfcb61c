"""The registry of laws: of a study's number, and of an outcome given a linear predictor."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import Distribution

from inference.default_priors import LOGIT_SCALE, Stated, state
from inference.priors.laws import LENGTH, LOGARITHM, PLACE, PLAIN, RATE, Measure
from schemas import Question

Own = Mapping[str, Any]
# The same on the probit scale: divided by the ratio of the two densities at the middle.
PROBIT_SCALE = 1.6
SHAPE = state("gamma", shape=2.0, rate=0.1)


class OutcomeLaw(NamedTuple):
    """The law of an outcome.

    at: (linear predictors, own parameters) -> log P(choice) (…, choices) or, of a number, its distribution.
    log_link: whether a number's mean is exp(η). whole: whether it has whole numbers alone. private: whether
    the noisy reports of a clipped number have a likelihood. own: {further parameter: (its default prior, the
    chains' start)}. A number whose mean is η has an sd too, in the outcome's unit. scale: of default priors,
    in the outcome's unit.
    """

    at: Callable[[Array, Own], Any]
    log_link: bool = False
    whole: bool = False
    private: bool = False
    own: Mapping[str, tuple[Stated, float]] = {}
    scale: float = LOGIT_SCALE

    def below(self, cuts: Any, eta: Any, own: Own) -> Array:
        """Return P(number ≤ cut)."""
        law, cuts = self.at(eta, own), jnp.asarray(cuts)
        if not self.log_link:
            return law.cdf(cuts)
        least = jnp.maximum(jnp.floor(cuts) if self.whole else cuts, 0.0)
        return jnp.where(cuts < 0, 0.0, law.cdf(least))


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


CHOICES: Mapping[str, OutcomeLaw] = {
    "logit": OutcomeLaw(_two(jax.nn.log_sigmoid)),
    "probit": OutcomeLaw(_two(jax.scipy.stats.norm.logcdf), scale=PROBIT_SCALE),
    "softmax": OutcomeLaw(_softmax),
    "ordered": OutcomeLaw(_ordered, own={"threshold": (state("normal", loc=0.0, scale=LOGIT_SCALE), 0.0)}),
}
NUMBERS: Mapping[str, OutcomeLaw] = {
    "normal": OutcomeLaw(lambda eta, own: dist.Normal(eta, own["sigma"]), private=True),
    "student_t": OutcomeLaw(
        lambda eta, own: dist.StudentT(own["nu"], eta, own["sigma"]), own={"nu": (SHAPE, 10.0)}
    ),
    "exponential": OutcomeLaw(lambda eta, _own: dist.Exponential(jnp.exp(-eta)), log_link=True, private=True),
    "poisson": OutcomeLaw(
        lambda eta, _own: dist.Poisson(jnp.exp(eta)), log_link=True, whole=True, private=True
    ),
    "negative_binomial": OutcomeLaw(
        lambda eta, own: dist.NegativeBinomial2(jnp.exp(eta), own["alpha"]),
        log_link=True,
        whole=True,
        private=True,
        own={"alpha": (SHAPE, 1.0)},
    ),
}
LAWS: Mapping[str, OutcomeLaw] = {**CHOICES, **NUMBERS}


class Ridge(NamedTuple):
    """The sites of a law's location and sd, and whether they describe logarithms."""

    location: str
    sd: str
    of_logarithms: bool


@dataclass(frozen=True)
class NumberLaw:
    """The law of one number, which devices clip to the bounds.

    Attributes:
        parameters: {name: measure}, in the order of drawing and reporting.
        distribution: The NumPyro distribution before clipping, from the parameters in the law's units.
        start: Values of the parameters at which samplers search for the mode, from the middle of the bounds.
        sample: Draws n numbers: (random, n, parameters in the law's units) -> (n,).
        whole: Whether it is a law on the whole numbers, which computes in own units.
        positive: Whether it has no mass below zero. It then computes from 0, in units of the bounds'
            distance. Any other law has the bounds at 0 and 1.
        ridge: Location and sd, if it has them: answers at a bound give a narrow wedge of both.
        priors: Default priors in own units, if `default_priors` does not state them.
    """

    parameters: Mapping[str, Measure]
    distribution: Callable[..., Distribution]
    start: Callable[[float], dict[str, object]]
    sample: Callable[..., Any]
    whole: bool = False
    positive: bool = True
    ridge: Ridge | None = None
    priors: Callable[[Question], Mapping[str, Any]] | None = None


NUMBER_LAWS: Mapping[str, NumberLaw] = {
    "normal": NumberLaw(
        {"mean": PLACE, "sd": LENGTH},
        lambda mean, sd: dist.Normal(mean, sd),
        lambda middle: {"mean": middle, "sd": 0.3},
        lambda random, n, mean, sd: random.normal(mean, sd, n),
        positive=False,
        ridge=Ridge("mean", "sd", False),
    ),
    "exponential": NumberLaw(
        {"rate": RATE},
        dist.Exponential,
        lambda middle: {"rate": 1 / middle},
        lambda random, n, rate: random.exponential(1 / rate, n),
    ),
    "lognormal": NumberLaw(
        {"log_mean": LOGARITHM, "log_sd": PLAIN},
        lambda log_mean, log_sd: dist.LogNormal(log_mean, log_sd),
        lambda middle: {"log_mean": math.log(middle), "log_sd": 0.5},
        lambda random, n, log_mean, log_sd: random.lognormal(log_mean, log_sd, n),
        ridge=Ridge("log_mean", "log_sd", True),
    ),
    "gamma": NumberLaw(
        {"shape": PLAIN, "mean": LENGTH},
        lambda shape, mean: dist.Gamma(shape, shape / mean),
        lambda middle: {"shape": 2.0, "mean": middle},
        lambda random, n, shape, mean: random.gamma(shape, mean / shape, n),
    ),
    "weibull": NumberLaw(
        {"shape": PLAIN, "scale": LENGTH},
        lambda shape, scale: dist.Weibull(scale, shape),
        lambda middle: {"shape": 1.5, "scale": middle},
        lambda random, n, shape, scale: scale * random.weibull(shape, n),
    ),
    # The law of the place between the bounds.
    "beta": NumberLaw(
        {"a": PLAIN, "b": PLAIN},
        lambda a, b: dist.Beta(a, b),
        lambda _middle: {"a": 2.0, "b": 2.0},
        lambda random, n, a, b: random.beta(a, b, n),
        positive=False,
    ),
    "poisson": NumberLaw(
        {"rate": PLAIN},
        dist.Poisson,
        lambda middle: {"rate": middle},
        lambda random, n, rate: random.poisson(rate, n),
        whole=True,
    ),
    # The failures before the first success, which has probability p; NumPy also counts the success.
    "geometric": NumberLaw(
        {"p": PLAIN},
        lambda p: dist.GeometricProbs(p),
        lambda middle: {"p": 1 / (1 + middle)},
        lambda random, n, p: random.geometric(p, n) - 1,
        whole=True,
    ),
}
