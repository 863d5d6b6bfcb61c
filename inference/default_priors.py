"""The priors of choices and numbers: as a study states them, or by default. Loads no JAX: plans need them.

Default priors of numbers are after LDPBI section 8.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from inference.results.intervals import REFUSED
from inference.units import RecordUnits, field_units, has_levels, number_units
from schemas import Question, Rational

Stated = Mapping[str, Any]


def state(distribution: str, **parameters: Any) -> Stated:
    """Return a prior as a document states it."""
    return {"distribution": distribution, **parameters}


# A formula's default prior sd of a coefficient times its column's sd, and of the intercept at the columns'
# means: on the logit scale, where shares from 0.7 % to 99.3 % are within two sds, and of a private number,
# times the distance of its bounds.
LOGIT_SCALE, NUMBER_SCALE = 2.5, 0.625
# Prior sd of the change in log odds along half the bounds of a number, or from no to yes: about two of a
# feature's sds (Gelman, Jakulin, Pittau & Su 2008).
LOG_ODDS = 2.5
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


def has_yes_no_response(question: Question) -> bool:
    """Return True if the response is a yes/no, so that the regression is logistic."""
    return question.response is not None and question.response.bounds is None


def regression_priors(question: Question) -> dict[str, Any]:
    """Return priors under which the response changes by at most a few half widths along a feature's bounds.

    In a table, slopes have an sd of 1/r for scaled feature vectors of length at most r. They explain at most
    the response's whole range: E[(θᵀx)²] = E‖x‖²/r² ≤ 1, with the response in −1…1. The norm limits each
    feature to about r/√d, instead of 1.

    With levels of features, slopes of a logistic regression are as steep as most in practice. Signs from a
    few thousand people carry little information on each slope; a prior of sd 1 would dominate. Features with
    levels have a law of cells. Else numbers have priors of mean and sd, and a yes/no has a share, with a
    uniform prior.
    """
    units, cells = RecordUnits(question), has_levels(question)
    middle, half = units.response
    longest = size = 1.0
    if question.ask == "table":
        d = len(question.features)
        longest = min(float(question.norm or 1), math.sqrt(d))
        size = longest / math.sqrt(d)
    slopes = {
        name: half / unit / longest for name, unit in zip(units.owners, units.unit.tolist(), strict=True)
    }
    yes_no = has_yes_no_response(question)
    if cells and yes_no:
        spans = {field.id: field_units(field).unit if field.bounds else 1.0 for field in question.features}
        slopes = {name: LOG_ODDS / span for name, span in spans.items()}
    numbers = [(field.id, *field_units(field)) for field in question.features if field.bounds and not cells]
    priors = {
        "centre": state("normal", loc=middle, scale=half),
        "coefficients": {name: state("normal", loc=0.0, scale=scale) for name, scale in slopes.items()},
        "feature_mean": {
            name: state("normal", loc=zero, scale=size * unit / 2) for name, zero, unit in numbers
        },
        "feature_sd": {
            name: state("gamma", shape=2.0, rate=4.0 / (size * unit)) for name, _, unit in numbers
        },
    }
    if numbers or not (cells or yes_no):
        priors["feature_correlation"] = state("lkj", concentration=2.0)
    return priors if yes_no else {**priors, "sd": state("gamma", shape=2.0, rate=4.0 / half)}


def with_stated(question: Question, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return every prior of a question's model: the stated priors, and these defaults for the rest."""
    priors = dict(defaults)
    if question.refusal:
        priors[REFUSED] = EVEN
    for name, stated in question.model.prior.items():
        of_features = not isinstance(stated.get("distribution"), str)
        priors[name] = {**priors[name], **floats(stated)} if of_features else floats(stated)
    return priors


def floats(value: Any) -> Any:
    """Return a stated prior with numbers in place of exact decimals."""
    if isinstance(value, dict):
        return {name: floats(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [float(entry) for entry in value]
    return float(value) if isinstance(value, Rational) else value
