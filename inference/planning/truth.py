"""A planner's guess of the truth, laid over one from the prior."""

from __future__ import annotations

from collections.abc import Mapping

from inference.simulated.answers import Truth
from schemas import Question
from schemas.errors import InputError


def with_truth(question: Question, drawn: Truth, given: Mapping[str, float]) -> Truth:
    """The drawn truth with the given parameters; shares that are not given fill up to one.

    Raises InputError for a parameter that the question's model does not have, or shares beyond one.
    """
    for name in given:
        if name not in drawn.parameters:
            raise InputError(f"{name!r} is no parameter of {question.id}: {', '.join(drawn.parameters)} are")
    parameters = {**drawn.parameters, **given}
    if given and question.model.name == "multinomial":
        parameters = _filled_up(parameters, given)
    return Truth(parameters, drawn.sites)


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
        if not equals or not name:
            raise InputError(f"{part!r} is not of the form parameter=number")
    return found
