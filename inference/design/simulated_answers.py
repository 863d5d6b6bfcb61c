"""True answers of simulated people, in the form that `Mechanism.perturb_many` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.base import Draws
from inference.units import RecordUnits, fields_of, number_units
from ldp_client.documents.errors import InputError
from schemas import Question

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """parameters: {name: value} in own units, as a posterior names them. sites: {site: value} of one draw."""

    parameters: Mapping[str, float]
    sites: Draws


Draw = Callable[[Question, Truth, int, Generator], Any]


def draw_answers(question: Question, truth: Truth, n: int, random: Generator) -> Any:
    """Answers of n people under the question's model. Raises InputError for a model that has none yet."""
    draw = ANSWERS.get(question.model.name)
    if draw is None:
        raise InputError(f"{question.id}: answers of model {question.model.name!r} cannot be simulated")
    return draw(question, truth, n, random)


def _normal(_question: Question, truth: Truth, n: int, random: Generator) -> Vector:
    return random.normal(truth.parameters["mean"], truth.parameters["sd"], n)


def _exponential(_question: Question, truth: Truth, n: int, random: Generator) -> Vector:
    return random.exponential(1 / truth.parameters["rate"], n)


def _lognormal(_question: Question, truth: Truth, n: int, random: Generator) -> Vector:
    return random.lognormal(truth.parameters["log_mean"], truth.parameters["log_sd"], n)


def _gamma(_question: Question, truth: Truth, n: int, random: Generator) -> Vector:
    shape = truth.parameters["shape"]
    return random.gamma(shape, truth.parameters["mean"] / shape, n)


def _weibull(_question: Question, truth: Truth, n: int, random: Generator) -> Vector:
    return truth.parameters["scale"] * random.weibull(truth.parameters["shape"], n)


def _beta(question: Question, truth: Truth, n: int, random: Generator) -> Vector:
    low, width = number_units(question)
    return low + width * random.beta(truth.parameters["a"], truth.parameters["b"], n)


def _poisson(_question: Question, truth: Truth, n: int, random: Generator) -> NDArray[np.int64]:
    return random.poisson(truth.parameters["rate"], n)


def _geometric(_question: Question, truth: Truth, n: int, random: Generator) -> NDArray[np.int64]:
    """Failures before the first success; NumPy counts the trial that succeeds too."""
    return random.geometric(truth.parameters["p"], n) - 1


def _bernoulli(_question: Question, truth: Truth, n: int, random: Generator) -> NDArray[np.bool_]:
    return random.random(n) < truth.parameters["p"]


def _multinomial(question: Question, truth: Truth, n: int, random: Generator) -> NDArray[Any]:
    shares = np.asarray([truth.parameters[f"p[{label}]"] for label in question.choices])
    index = np.repeat(np.arange(len(shares)), random.multinomial(n, shares / shares.sum()))
    return np.asarray(question.choices)[index]


def _features(question: Question, truth: Truth, n: int, random: Generator) -> Vector:
    """Features in own units, (n, d): normal, as the model takes them."""
    units = RecordUnits(question)
    factor = np.atleast_2d(truth.sites.get("feature_correlation", 1.0))
    white = random.normal(size=(n, len(units.names))) @ factor.T
    return units.zero + units.unit * (truth.sites["feature_mean"] + truth.sites["feature_sd"] * white)


def _predictor(question: Question, truth: Truth, features: Vector) -> Vector:
    names = [feature.id for feature in question.features]
    slopes = np.asarray([truth.parameters[f"coefficient[{name}]"] for name in names])
    return truth.parameters["intercept"] + features @ slopes


def _record(question: Question, features: Vector, response: NDArray[Any]) -> dict[str, NDArray[Any]]:
    assert question.response is not None
    names = [feature.id for feature in question.features]
    return {**dict(zip(names, features.T, strict=True)), question.response.id: response}


def _marginals(question: Question, truth: Truth, n: int, random: Generator) -> dict[str, NDArray[Any]]:
    found = truth.parameters
    names = [field.id for field in fields_of(question)]
    return {name: random.normal(found[f"mean[{name}]"], found[f"sd[{name}]"], n) for name in names}


def _linear(question: Question, truth: Truth, n: int, random: Generator) -> dict[str, NDArray[Any]]:
    features = _features(question, truth, n, random)
    noise = random.normal(0, truth.parameters["sd"], n)
    return _record(question, features, _predictor(question, truth, features) + noise)


def _logistic(question: Question, truth: Truth, n: int, random: Generator) -> dict[str, NDArray[Any]]:
    features = _features(question, truth, n, random)
    chance = 1 / (1 + np.exp(-_predictor(question, truth, features)))
    return _record(question, features, random.random(n) < chance)


ANSWERS: dict[str, Draw] = {
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
