"""Priors stated in Python, in the shape of a study document."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from ldp_client.documents.catalogue import MODELS
from ldp_client.documents.errors import StudyError
from ldp_client.documents.priors import check_prior, given_priors
from schemas import Question


def with_priors(question: Question, priors: Mapping[str, Any]) -> Question:
    """The question with these priors in place of the ones that its study states.

    priors: {parameter: {"distribution": name, …}} as in a study, where numbers may stand for decimals.
    Raises StudyError, which names what is wrong.
    """
    stated = {"name": question.model.name, "prior": _decimals(priors)}
    parsed = MODELS[question.model.name].shape.read(stated, "model", StudyError)
    shown = {
        "model": parsed,
        "choices": question.choices,
        "features": [vars(field) for field in question.features],
        "response": vars(question.response) if question.response else None,
    }
    check_prior(shown, question.id, StudyError)
    changed = copy(question)
    changed.model = copy(question.model)
    changed.model.prior = {**question.model.prior, **given_priors(parsed)}
    return changed


def _decimals(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _decimals(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_decimals(entry) for entry in value]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(value) if number else value
