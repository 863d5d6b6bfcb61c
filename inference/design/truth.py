"""A planner's guess of the truth, laid over one from the prior."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from inference.design.simulated_answers import Truth
from inference.results.diagnostics import listed
from ldp_client.documents.catalogue import MODELS
from ldp_client.documents.errors import InputError
from ldp_client.documents.priors import EACH_POSITIVE, POSITIVE, SHARE
from schemas import Question


def with_truth(question: Question, drawn: Truth, given: Mapping[str, float]) -> Truth:
    """The drawn truth with the given parameters; shares that are not given fill up to one.

    Raises InputError for a parameter that the question's model does not have, a value that it cannot have, or
    shares beyond one.
    """
    parameters = dict(drawn.parameters)
    if question.model.name == "multinomial":
        parameters = {name: value for name, value in parameters.items() if name.startswith("p[")}
    for name, value in given.items():
        if name not in parameters:
            raise InputError(f"{name!r} is no parameter of {question.id}: {listed(list(parameters))} are")
        _check_value(question, name, value)
    if given and question.model.name == "multinomial":
        return Truth(_filled_up(parameters, given), drawn.sites)
    return Truth({**parameters, **given}, drawn.sites)


def _check_value(question: Question, name: str, value: float) -> None:
    """Raises InputError for a value that the parameter cannot have."""
    kind = MODELS[question.model.name].shape.optional["prior"].optional.get(name.partition("[")[0])
    if kind in (POSITIVE, EACH_POSITIVE) and not value > 0:
        raise InputError(f"the truth of {name} must be above 0, not {value:g}")
    if kind is SHARE and not 0 <= value <= 1:
        raise InputError(f"the truth of {name} must be between 0 and 1, not {value:g}")


def _filled_up(parameters: Mapping[str, float], given: Mapping[str, float]) -> dict[str, float]:
    left = 1 - sum(given.values())
    others = {name: value for name, value in parameters.items() if name not in given}
    total = sum(others.values())
    if min(given.values()) < 0 or left < -1e-9 or (not others and left > 1e-9):
        raise InputError("the shares of the truth must be between 0 and 1 and add up to 1")
    return {name: given.get(name, others.get(name, 0.0) * left / (total or 1)) for name in parameters}


def parse_truth(text: str) -> dict[str, float]:
    """{parameter: value} from "mean=30,sd=5". Raises InputError."""
    found = {}
    for part in text.split(","):
        name, equals, value = part.rpartition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name or not isfinite(found[name.strip()]):
            raise InputError(f"{part!r} is not of the form parameter=number")
    return found
