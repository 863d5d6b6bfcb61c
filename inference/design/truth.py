"""A planner's guess of the truth, merged into a draw from the prior."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite

from inference.models import family_of
from inference.models.base import Truth
from inference.results.diagnostics import listed
from ldp_client.documents.errors import InputError, UsageError
from schemas import Question
from schemas.models import MODELS
from schemas.priors import EACH_POSITIVE, POSITIVE, SHARE

# Labels in brackets may have commas between them, as in p[a, b].
_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")


def with_truth(question: Question, drawn: Truth, given: Mapping[str, float]) -> Truth:
    """The drawn truth with the given parameters; shares that are not given fill up to one.

    Raises InputError for a parameter that the question's model does not have, a value that it cannot have, or
    shares beyond one.
    """
    family = family_of(question)
    parameters = family.settable(drawn.parameters)
    for name, value in given.items():
        if name not in parameters:
            raise InputError(
                f"{name!r} is no parameter of {question.id}, which has {listed(list(parameters))}",
                code="plan.unknown_truth_parameter",
            )
        _check_value(question, name, value)
    return Truth(family.completed(parameters, given), drawn.sites)


def _check_value(question: Question, name: str, value: float) -> None:
    """Raise InputError for a value that the parameter cannot have."""
    kind = MODELS[question.model.name].shape.optional["prior"].optional.get(name.partition("[")[0])
    if kind in (POSITIVE, EACH_POSITIVE) and not value > 0:
        raise InputError(
            f"the truth of {name} must be above 0, not {value:g}", code="plan.truth_not_positive"
        )
    if kind is SHARE and not 0 <= value <= 1:
        raise InputError(
            f"the truth of {name} must be between 0 and 1, not {value:g}", code="plan.truth_not_probability"
        )


def unstated(name: str) -> InputError:
    """Return the error for a plan that lacks a parameter."""
    return InputError(
        f"state what {name} may be, such as --truth {name}=0.5: a plan cannot guess it",
        code="plan.truth_missing",
    )


def stated_values(options: Sequence[str]) -> dict[str, float]:
    """{name: value} of an option that may be repeated. Raises InputError."""
    return parse_truth(",".join(options)) if options else {}


def parse_truth(text: str) -> dict[str, float]:
    """{parameter: value} from "mean=30,sd=5". Raises InputError."""
    found: dict[str, float] = {}
    for part in _OUTSIDE_BRACKETS.split(text):
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
