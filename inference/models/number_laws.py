"""The built-in laws of a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpyro.distributions as dist
from numpy.random import Generator
from numpyro.distributions import Distribution

from inference.models.family import register
from inference.models.number import Ridge, Start
from inference.models.number_law import (
    LENGTH,
    LOGARITHM,
    PLACE,
    PLAIN,
    RATE,
    NumberLaw,
    measured,
)
from inference.units import number_units
from schemas import Question

Parameters = Mapping[str, float]


@register
class Normal(NumberLaw):
    """A normal law."""

    name = "normal"
    measures = measured(mean=PLACE, sd=LENGTH)
    positive = False
    ridge = Ridge("mean", "sd", False)

    def law(self, *, mean: Any, sd: Any) -> Distribution:
        return dist.Normal(mean, sd)

    def start(self, start: Start) -> dict[str, object]:
        return {"mean": start.mean, "sd": math.sqrt(start.variance)}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.normal(truth["mean"], truth["sd"], n)


@register
class Exponential(NumberLaw):
    """An exponential law."""

    name = "exponential"
    measures = measured(rate=RATE)

    def law(self, *, rate: Any) -> Distribution:
        return dist.Exponential(rate)

    def start(self, start: Start) -> dict[str, object]:
        return {"rate": 1.0 / start.mean}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.exponential(1 / truth["rate"], n)


@register
class LogNormal(NumberLaw):
    """A log-normal law."""

    name = "lognormal"
    measures = measured(log_mean=LOGARITHM, log_sd=PLAIN)
    ridge = Ridge("log_mean", "log_sd", True)

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
    """A gamma law, by its mean."""

    name = "gamma"
    measures = measured(shape=PLAIN, mean=LENGTH)

    def law(self, *, shape: Any, mean: Any) -> Distribution:
        return dist.Gamma(shape, shape / mean)

    def start(self, start: Start) -> dict[str, object]:
        return {"shape": _between(start.mean**2 / start.variance), "mean": start.mean}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        del question
        return random.gamma(truth["shape"], truth["mean"] / truth["shape"], n)


@register
class Weibull(NumberLaw):
    """A Weibull law."""

    name = "weibull"
    measures = measured(shape=PLAIN, scale=LENGTH)

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
    """The law of the place between the bounds."""

    name = "beta"
    measures = measured(a=PLAIN, b=PLAIN)
    positive = False

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
    """A Poisson law."""

    name = "poisson"
    measures = measured(rate=PLAIN)
    whole = True

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

    def law(self, *, p: Any) -> Distribution:
        return dist.GeometricProbs(p)

    def start(self, start: Start) -> dict[str, object]:
        return {"p": 1 / (1 + start.mean)}

    def sample(self, question: Question, truth: Parameters, n: int, random: Generator) -> Any:
        """Draw failures; NumPy also counts the trial that succeeds."""
        del question
        return random.geometric(truth["p"], n) - 1


def _between(value: float) -> float:
    return min(max(value, 0.2), 50.0)
