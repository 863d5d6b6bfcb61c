"""Record questions in Python, for `ask`: several fields, of which a regression explains one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ldp_client.documents.errors import InputError
from ldpkit.stating import (
    Mechanism,
    Number,
    Spoken,
    decimal_of,
    mechanism_of,
    model_of,
    question_of,
)


def linear(
    id: str,
    features: Sequence[Mapping[str, Any]],
    response: Mapping[str, Any],
    *,
    epsilon: Number,
    text: Spoken = "",
    mechanism: Mechanism = "sampled_products",
    delta: Number | None = None,
    norm: Number | None = None,
    weights: Mapping[str, int] | None = None,
    products: int | None = None,
    prior: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Ask for a record, of which a linear regression explains one field by the others.

    Args:
        id: as for `yes_no`, and so are epsilon, text and prior.
        features: the explanatory fields, each made by `feature`.
        response: the explained field: a `feature` with bounds.
        epsilon: see id.
        text: see id.
        mechanism: as for `yes_no`: "sampled_products", or others with a delta and a norm.
        delta: as for `number`.
        norm: the largest norm of the features' vector, to which devices shrink it; not for sampled products.
        weights: {kind: how often} for sampled products, such as {"response": 4}.
        products: how many sampled products a report has, 1 to 4 (default 1).
        prior: see id.

    Returns:
        The question, for `study`.

    Raises:
        InputError: an argument has the wrong form, or the mechanism states it too.
    """
    stated = mechanism_of(f"ask.linear({id!r})", mechanism, epsilon, delta, weights, products)
    return _record("linear", id, features, response, stated, text, norm, prior)


def logistic(
    id: str,
    features: Sequence[Mapping[str, Any]],
    response: Mapping[str, Any],
    *,
    epsilon: Number,
    text: Spoken = "",
    mechanism: Mechanism = "sampled_products",
    delta: Number | None = None,
    norm: Number | None = None,
    weights: Mapping[str, int] | None = None,
    products: int | None = None,
    prior: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Ask for a record, of which a logistic regression explains a yes or no by the other fields.

    Args:
        id: as for `linear`, and so are all others.
        features: see id.
        response: a `feature` without bounds.
        epsilon: see id.
        text: see id.
        mechanism: see id.
        delta: see id.
        norm: see id.
        weights: see id.
        products: see id.
        prior: see id.

    Returns:
        The question, for `study`.

    Raises:
        InputError: an argument has the wrong form, or the mechanism states it too.
    """
    stated = mechanism_of(f"ask.logistic({id!r})", mechanism, epsilon, delta, weights, products)
    return _record("logistic", id, features, response, stated, text, norm, prior)


def _record(
    kind: str,
    id: str,
    features: Sequence[Mapping[str, Any]],
    response: Mapping[str, Any],
    mechanism: dict[str, Any],
    text: Spoken,
    norm: Number | None,
    prior: Mapping[str, Any] | None,
) -> dict[str, Any]:
    parts: dict[str, Any] = {"features": [dict(each) for each in features], "response": dict(response)}
    parts |= {} if norm is None else {"norm": decimal_of(norm)}
    parts |= {"mechanism": mechanism, "model": model_of(f"{kind}_regression", prior)}
    return question_of(id, "record", text, parts)


def feature(
    id: str,
    low: Number | None = None,
    high: Number | None = None,
    *,
    choices: Sequence[Spoken] | None = None,
    cuts: Sequence[Number] = (),
    text: Spoken = "",
    unit: Spoken = "",
) -> dict[str, Any]:
    """Define a field of a record: a number with bounds, one of a few choices, or else yes or no.

    Args:
        id: its name within the record.
        low: a number's lower bound.
        high: a number's upper bound.
        choices: labels.
        cuts: the limits between a number's bins, if it is used in bins.
        text: what people read instead of its name.
        unit: a number's unit, such as "years".

    Returns:
        The field, for `linear` and `logistic`.

    Raises:
        InputError: it has only one bound, or bounds and choices, or a unit but no bounds.
    """
    if unit and low is None:
        raise InputError(
            f"ask.feature({id!r}): unit is only for a number: give low and high",
            code="builder.unit_without_number",
        )
    named = {"id": id, **({"text": text} if text else {})}
    if (low is None) != (high is None) or (low is not None and choices is not None):
        raise InputError(
            f"ask.feature({id!r}): a number has low and high; a choice has choices, and no bounds",
            code="builder.feature_choices_or_bounds",
        )
    if low is not None and high is not None:
        bounds = named | {"bounds": [decimal_of(low), decimal_of(high)]}
        bounds |= {"unit": unit} if unit else {}
        return {**bounds, "cuts": [decimal_of(cut) for cut in cuts]} if cuts else bounds
    if choices is not None:
        return {**named, "ask": "choice", "choices": list(choices)}
    return {**named, "ask": "yes_no"}
