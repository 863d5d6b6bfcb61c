"""The built-in laws of a number; default priors after LDPBI section 8."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpyro.distributions as dist
from numpy.random import Generator
from numpyro.distributions import Distribution

from inference.models.family import Priors, register
from inference.models.number import Ridge, Start
from inference.models.number_law import (
    LENGTH,
    LOGARITHM,
    PLACE,
    PLAIN,
    RATE,
    NumberLaw,
    measured,
    top_of,
)
from inference.priors.laws import Stated, state
from inference.units import number_units
from schemas import Question

Parameters = Mapping[str, float]


@register
class Normal(NumberLaw):
    """The mean near the bounds, the sd about half their distance."""

    name = "normal"
    measures = measured(mean=PLACE, sd=LENGTH)
    positive = False
    ridge = Ridge("mean", "sd", False)

    def priors(self, question: Question) -> Priors:
        low, width = number_units(question)
        return {
            "mean": state("normal", loc=low + width / 2, scale=width),
            "sd": state("gamma", shape=2.0, rate=4.0 / width),
        }

    def law(self, *, mean: Any, sd: Any) -> Distribution:
        return dist.Normal(mean, sd)

    def start(self, start: Start) -> dict[str, object]:
        return {"mean": start.mean, "sd": math.sqrt(start.variance)}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.normal(truth["mean"], truth["sd"], n)


@register
class Exponential(NumberLaw):
    """A priori, the mean is a quarter of the upper bound, give or take a factor of four.

    The prior is equally heavy on both sides. A gamma prior of the rate would exclude means far below a
    generous bound.
    """

    name = "exponential"
    measures = measured(rate=RATE)

    def priors(self, question: Question) -> Priors:
        return {"rate": state("log_normal", loc=math.log(4 / top_of(question)), scale=1.5)}

    def law(self, *, rate: Any) -> Distribution:
        return dist.Exponential(rate)

    def start(self, start: Start) -> dict[str, object]:
        return {"rate": 1.0 / start.mean}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.exponential(1 / truth["rate"], n)


@register
class LogNormal(NumberLaw):
    """The median is a quarter of the upper bound, give or take a factor of four."""

    name = "lognormal"
    measures = measured(log_mean=LOGARITHM, log_sd=PLAIN)
    ridge = Ridge("log_mean", "log_sd", True)

    def priors(self, question: Question) -> Priors:
        return {
            "log_mean": state("normal", loc=math.log(top_of(question) / 4), scale=1.5),
            "log_sd": state("gamma", shape=2.0, rate=2.0),
        }

    def law(self, *, log_mean: Any, log_sd: Any) -> Distribution:
        return dist.LogNormal(log_mean, log_sd)

    def start(self, start: Start) -> dict[str, object]:
        spread = math.log1p(start.variance / start.mean**2)
        return {"log_mean": math.log(start.mean) - spread / 2, "log_sd": math.sqrt(spread)}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.lognormal(truth["log_mean"], truth["log_sd"], n)


@register
class Gamma(NumberLaw):
    """The mean is about half the upper bound; from very skewed to nearly normal."""

    name = "gamma"
    measures = measured(shape=PLAIN, mean=LENGTH)

    def priors(self, question: Question) -> Priors:
        return {"shape": state("gamma", shape=2.0, rate=0.5), "mean": _about_half(question)}

    def law(self, *, shape: Any, mean: Any) -> Distribution:
        return dist.Gamma(shape, shape / mean)

    def start(self, start: Start) -> dict[str, object]:
        return {"shape": _between(start.mean**2 / start.variance), "mean": start.mean}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.gamma(truth["shape"], truth["mean"] / truth["shape"], n)


@register
class Weibull(NumberLaw):
    """The scale is about half the upper bound."""

    name = "weibull"
    measures = measured(shape=PLAIN, scale=LENGTH)

    def priors(self, question: Question) -> Priors:
        return {"shape": state("gamma", shape=3.0, rate=1.5), "scale": _about_half(question)}

    def law(self, *, shape: Any, scale: Any) -> Distribution:
        return dist.Weibull(scale, shape)

    def start(self, start: Start) -> dict[str, object]:
        shape = _between((math.sqrt(start.variance) / start.mean) ** -1.086)
        return {"shape": shape, "scale": start.mean / math.gamma(1 + 1 / shape)}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return truth["scale"] * random.weibull(truth["shape"], n)


@register
class Beta(NumberLaw):
    """The law of the place between the bounds, from mass at the bounds to a narrow peak between them."""

    name = "beta"
    measures = measured(a=PLAIN, b=PLAIN)
    positive = False

    def priors(self, question: Question) -> Priors:
        del question
        return {name: state("gamma", shape=2.0, rate=0.5) for name in ("a", "b")}

    def law(self, *, a: Any, b: Any) -> Distribution:
        return dist.Beta(a, b)

    def start(self, start: Start) -> dict[str, object]:
        size = max(start.mean * (1 - start.mean) / start.variance - 1, 0.2)
        return {"a": _between(start.mean * size), "b": _between((1 - start.mean) * size)}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        low, width = number_units(question)
        return low + width * random.beta(truth["a"], truth["b"], n)


@register
class Poisson(NumberLaw):
    """The rate is about half the upper bound."""

    name = "poisson"
    measures = measured(rate=PLAIN)
    whole = True

    def priors(self, question: Question) -> Priors:
        return {"rate": _about_half(question)}

    def law(self, *, rate: Any) -> Distribution:
        return dist.Poisson(rate)

    def start(self, start: Start) -> dict[str, object]:
        return {"rate": start.mean}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.poisson(truth["rate"], n)


@register
class Geometric(NumberLaw):
    """The failures before the first success, which has probability p."""

    name = "geometric"
    measures = measured(p=PLAIN)
    whole = True

    def priors(self, question: Question) -> Priors:
        del question
        return {"p": state("beta", a=1.0, b=1.0)}

    def law(self, *, p: Any) -> Distribution:
        return dist.GeometricProbs(p)

    def start(self, start: Start) -> dict[str, object]:
        return {"p": 1 / (1 + start.mean)}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        """Draw failures; NumPy also counts the trial that succeeds."""
        del question
        return random.geometric(truth["p"], n) - 1


def _about_half(question: Question) -> Stated:
    return state("gamma", shape=2.0, rate=4.0 / top_of(question))


def _between(value: float) -> float:
    return min(max(value, 0.2), 50.0)
