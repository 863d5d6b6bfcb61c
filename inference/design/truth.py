"""A planner's guess of the truth, merged into a draw from the prior. Loads no JAX."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import TypeVar

from inference.results.intervals import REFUSED
from inference.results.verdict import listed
from ldp_client.documents.errors import InputError, UsageError
from schemas import Question
from schemas.models import MODELS, NO_LAW
from schemas.priors import EACH_POSITIVE, POSITIVE, SHARE, SIMPLEX

Truth = TypeVar("Truth")
# Labels in brackets may have commas between them, as in p[a, b].
_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")


def settable(question: Question, parameters: Mapping[str, float]) -> dict[str, float]:
    """Return the parameters that a planner may state: those from which answers are simulated."""
    if question.ask == "record":
        line = ("intercept", "sd", "coefficient")
        return {name: value for name, value in parameters.items() if name.partition("[")[0] in line}
    if question.ask == "choice":
        return {name: value for name, value in parameters.items() if name[:2] == "p[" or name == REFUSED}
    return dict(parameters)


def completed(question: Question, drawn: Mapping[str, float], given: Mapping[str, float]) -> dict[str, float]:
    """Return the drawn parameters with the given ones; shares that are not given fill up to one.

    Raises InputError for a parameter that the question's model does not have, a value that it cannot have, or
    shares beyond one.
    """
    parameters = settable(question, drawn)
    for name, value in given.items():
        if name not in parameters:
            raise InputError(
                f"{name!r} is no parameter of {question.id}, which has {listed(list(parameters))}",
                code="plan.unknown_truth_parameter",
            )
        _check_value(question, name, value)
    shares = [name for name in parameters if name[:2] == "p["]
    stated = {name: value for name, value in given.items() if name != REFUSED}
    if question.model.name == NO_LAW and stated:
        raise InputError(
            f"parameters of the model {NO_LAW!r} cannot be set: its truths are drawn from its prior. Name a "
            "law to plan for a truth of your own",
            code="plan.truth_of_free_model",
        )
    if not shares or not stated:
        return {**parameters, **given}
    others = {name: parameters[name] for name in shares if name not in stated}
    left, total = 1 - sum(stated.values()), sum(others.values())
    if left < -1e-9 or (not others and left > 1e-9):
        raise InputError(
            "the shares of the truth must be between 0 and 1 and add up to 1", code="plan.truth_shares"
        )
    return {**parameters, **{name: value * left / (total or 1) for name, value in others.items()}, **given}


def _check_value(question: Question, name: str, value: float) -> None:
    """Raise InputError for a value that the parameter cannot have."""
    kind = MODELS[question.model.name].shape.optional["prior"].optional.get(name.partition("[")[0])
    if kind in (POSITIVE, EACH_POSITIVE) and not value > 0:
        raise InputError(
            f"the truth of {name} must be above 0, not {value:g}", code="plan.truth_not_positive"
        )
    if kind in (SHARE, SIMPLEX) and not 0 <= value <= 1:
        raise InputError(
            f"the truth of {name} must be between 0 and 1, not {value:g}", code="plan.truth_not_probability"
        )
    if name == REFUSED and value == 1:
        raise InputError(
            "the truth of refused must be below 1: all would refuse", code="plan.truth_all_refuse"
        )


def first_possible(question: Question, truths: Iterable[Truth], count: int) -> list[Truth]:
    """Return the first of the truths that a record's bounds allow. Raises InputError if there are none."""
    possible = list(islice(truths, count))
    if not possible:
        raise InputError(
            f"{question.id}: no truth drawn from the prior keeps the records within their bounds: state "
            "narrower priors, or other values by --truth",
            code="plan.records_beyond_bounds",
        )
    return possible


def stated_values(options: Sequence[str]) -> dict[str, float]:
    """Return {parameter: value} from options such as "mean=30,sd=5". Raises UsageError."""
    found: dict[str, float] = {}
    for part in (part for text in options for part in _OUTSIDE_BRACKETS.split(text)):
        name, equals, value = part.rpartition("=")
        name = name.strip()
        if name in found:
            raise UsageError(
                f"{name} has two values: {found[name]:g} and {value}", code="plan.truth_given_twice"
            )
        try:
            found[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name or not isfinite(found[name]):
            raise UsageError(f"{part!r} is not of the form parameter=number", code="plan.truth_wrong_form")
    return found
