"""The priors of choices and numbers: as a study states them, or by default. Loads no JAX: plans need them.

Default priors of numbers are after LDPBI section 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from inference.results.intervals import REFUSED
from inference.units import number_units
from schemas import Question, Rational

Stated = Mapping[str, Any]


def state(distribution: str, **parameters: Any) -> Stated:
    """Return a prior as a document states it."""
    return {"distribution": distribution, **parameters}


# The prior of the share of people who prefer not to say, if a question offers that.
EVEN = state("beta", a=1.0, b=1.0)


def top_of(question: Question) -> float:
    """Return the scale of a law from zero: the upper bound, which may far exceed the bounds' distance."""
    low, width = number_units(question)
    return low + width if low + width > 0 else width


def _about_half(question: Question) -> Stated:
    return state("gamma", shape=2.0, rate=4.0 / top_of(question))


def _multinomial(question: Question) -> dict[str, Stated]:
    """Return a Dirichlet prior: worth one answer a choice, or two answers in all for a scale.

    The share at or below a scale's middle then has a uniform prior, as for a yes/no. With one answer a level,
    the prior of cumulative shares would tighten as the scale is cut finer.
    """
    return {"p": state("dirichlet", concentration=2 / len(question.choices) if question.ordered else 1.0)}


def _normal(question: Question) -> dict[str, Stated]:
    """Return priors of a mean near the bounds, and an sd of about half their distance."""
    low, width = number_units(question)
    return {
        "mean": state("normal", loc=low + width / 2, scale=width),
        "sd": state("gamma", shape=2.0, rate=4.0 / width),
    }


def _exponential(question: Question) -> dict[str, Stated]:
    """Return the prior of a mean of a quarter of the upper bound, give or take a factor of four.

    It is equally heavy on both sides. A gamma prior of the rate would exclude means far below a generous
    bound.
    """
    return {"rate": state("log_normal", loc=math.log(4 / top_of(question)), scale=1.5)}


def _lognormal(question: Question) -> dict[str, Stated]:
    """Return the prior of a median of a quarter of the upper bound, give or take a factor of four."""
    return {
        "log_mean": state("normal", loc=math.log(top_of(question) / 4), scale=1.5),
        "log_sd": state("gamma", shape=2.0, rate=2.0),
    }


# {model: question -> {parameter: default prior}}, in the question's own units.
DEFAULTS: Mapping[str, Callable[[Question], dict[str, Stated]]] = {
    "bernoulli": lambda _question: {"p": state("beta", a=1.0, b=1.0)},
    "multinomial": _multinomial,
    "normal": _normal,
    "exponential": _exponential,
    "lognormal": _lognormal,
    # From very skewed to nearly normal.
    "gamma": lambda question: {"shape": state("gamma", shape=2.0, rate=0.5), "mean": _about_half(question)},
    "weibull": lambda question: {
        "shape": state("gamma", shape=3.0, rate=1.5),
        "scale": _about_half(question),
    },
    # From mass at the bounds to a narrow peak between them.
    "beta": lambda _question: {name: state("gamma", shape=2.0, rate=0.5) for name in ("a", "b")},
    "poisson": lambda question: {"rate": _about_half(question)},
    "geometric": lambda _question: {"p": state("beta", a=1.0, b=1.0)},
}


def with_stated(question: Question, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return every prior of a question's model: the stated priors, and these defaults for the rest."""
    priors = dict(defaults)
    if question.refusal:
        priors[REFUSED] = EVEN
    for name, stated in question.model.prior.items():
        of_features = not isinstance(stated.get("distribution"), str)
        priors[name] = {**priors[name], **_floats(stated)} if of_features else _floats(stated)
    return priors


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _floats(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [float(entry) for entry in value]
    return float(value) if isinstance(value, Rational) else value
