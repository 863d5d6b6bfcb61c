"""The default priors (after LDPBI section 8) and those that a study states, in the question's own units.

To add a model: its function here, under the model's name in DEFAULTS; the parameters that a study may
state stand in ldp_client/documents/catalogue.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from inference.priors.laws import Stated, state
from inference.units import RecordUnits, field_units, fields_of, number_units
from schemas import Question, Rational

# {parameter: Stated}, and {parameter: {feature id: Stated}} for what each feature has.
Priors = Mapping[str, Any]


def _normal(question: Question) -> Priors:
    """The mean near the bounds, the sd about half their distance."""
    low, width = number_units(question)
    return {
        "mean": state("normal", loc=low + width / 2, scale=width),
        "sd": state("gamma", shape=2.0, rate=4.0 / width),
    }


def _top(question: Question) -> float:
    """What a law from zero is measured by: the upper bound, which may be far above the bounds' distance."""
    low, width = number_units(question)
    return low + width if low + width > 0 else width


def _exponential(question: Question) -> Priors:
    """The mean is about a quarter of the upper bound; the rate may be near zero."""
    return {"rate": state("gamma", shape=2.0, rate=_top(question) / 2)}


def _lognormal(question: Question) -> Priors:
    """The median is a quarter of the upper bound, give or take a factor of four."""
    return {
        "log_mean": state("normal", loc=math.log(_top(question) / 4), scale=1.5),
        "log_sd": state("gamma", shape=2.0, rate=2.0),
    }


def _gamma(question: Question) -> Priors:
    """The mean is about half the upper bound; from very skewed to nearly normal."""
    return {"shape": state("gamma", shape=2.0, rate=0.5), "mean": _about_half(question)}


def _weibull(question: Question) -> Priors:
    return {"shape": state("gamma", shape=3.0, rate=1.5), "scale": _about_half(question)}


def _beta(_question: Question) -> Priors:
    """From mass at the bounds to a narrow peak between them."""
    return {name: state("gamma", shape=2.0, rate=0.5) for name in ("a", "b")}


def _poisson(question: Question) -> Priors:
    return {"rate": _about_half(question)}


def _geometric(_question: Question) -> Priors:
    return {"p": state("beta", a=1.0, b=1.0)}


def _about_half(question: Question) -> Stated:
    return state("gamma", shape=2.0, rate=4.0 / _top(question))


def _bernoulli(_question: Question) -> Priors:
    return {"p": state("beta", a=1.0, b=1.0)}


def _multinomial(_question: Question) -> Priors:
    return {"p": state("dirichlet", concentration=1.0)}


def _marginals(question: Question) -> Priors:
    """Every field as one number (`_normal`)."""
    spans = [(field.id, *field_units(field)) for field in fields_of(question)]
    return {
        "mean": {name: state("normal", loc=zero, scale=2 * unit) for name, zero, unit in spans},
        "sd": {name: state("gamma", shape=2.0, rate=2.0 / unit) for name, _, unit in spans},
    }


def _linear(question: Question) -> Priors:
    """From the lower to the upper bound of a feature the response rises by at most a few half widths."""
    units = RecordUnits(question)
    lines = _table_line(question) if question.ask == "table" else _logistic(question)
    return {**lines, "sd": state("gamma", shape=2.0, rate=4.0 / units.response.unit)}


def _table_line(question: Question) -> Priors:
    """With scaled features no longer than r, slopes of sd 1/r explain at most the response's whole range.

    E[(θᵀx)²] = E‖x‖²/r² ≤ 1, the response within −1 and 1. Features share that length: each is about r/√d
    where they would be 1 without a norm.
    """
    d = len(question.features)
    longest = min(float(question.norm or 1), math.sqrt(d))
    return _line(question, longest, longest / math.sqrt(d))


def _logistic(question: Question) -> Priors:
    return _line(question, longest=1.0, size=1.0)


def _line(question: Question, longest: float, size: float) -> Priors:
    """longest: length of a scaled feature vector. size: of a scaled feature, at most."""
    units = RecordUnits(question)
    middle, half = units.response
    spans = list(zip(units.names, units.zero.tolist(), units.unit.tolist(), strict=True))
    return {
        "centre": state("normal", loc=middle, scale=half),
        "coefficients": {
            name: state("normal", loc=0.0, scale=half / unit / longest) for name, _, unit in spans
        },
        "feature_mean": {
            name: state("normal", loc=zero, scale=size * unit / 2) for name, zero, unit in spans
        },
        "feature_sd": {name: state("gamma", shape=2.0, rate=4.0 / (size * unit)) for name, _, unit in spans},
        "feature_correlation": state("lkj", concentration=2.0),
    }


DEFAULTS: dict[str, Callable[[Question], Priors]] = {
    "normal": _normal,
    "exponential": _exponential,
    "lognormal": _lognormal,
    "gamma": _gamma,
    "weibull": _weibull,
    "beta": _beta,
    "poisson": _poisson,
    "geometric": _geometric,
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "linear_regression": _linear,
    "logistic_regression": _logistic,
    "marginals": _marginals,
}


def priors_of(question: Question) -> Priors:
    """Every prior of a question's model: the stated ones, and the defaults of the others."""
    found = dict(DEFAULTS[question.model.name](question))
    for name, stated in question.model.prior.items():
        found[name] = {**found[name], **_floats(stated)} if _is_of_features(stated) else _floats(stated)
    return found


def _is_of_features(stated: Mapping[str, Any]) -> bool:
    return not isinstance(stated.get("distribution"), str)


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _floats(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [float(entry) for entry in value]
    return float(value) if isinstance(value, Rational) else value
