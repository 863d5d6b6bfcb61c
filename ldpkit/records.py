"""Record questions in Python, for `ask`: several fields, of which a regression explains one."""

from collections.abc import Mapping, Sequence
from typing import Any

from ldp_client.documents.errors import InputError
from ldpkit.stating import Mechanism, Number, Spoken, decimal_of, mechanism_of, model_of, stated_part


def regression(
    id: str,
    features: Sequence[Mapping[str, Any]],
    response: Mapping[str, Any],
    *,
    epsilon: Number,
    text: Spoken = "",
    mechanism: Mechanism = "sampled_products",
    norm: Number | None = None,
    prior: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Ask for a record, of which a regression explains one field by the others.

    The regression is linear, or logistic if a yes or no is explained.

    Args:
        id: as for `yes_no`, and so are epsilon, text and prior.
        features: the explanatory fields, each made by `feature`.
        response: the explained field: a `feature` with bounds, or a yes/no.
        epsilon: see id.
        text: see id.
        mechanism: as for `yes_no`: "sampled_products", which may state products and weights, or others with
            a delta and a norm.
        norm: the largest norm of the features' vector, to which devices shrink it; not for sampled products.
        prior: see id.

    Returns:
        The question, for `study`.

    Raises:
        InputError: an argument has the wrong form, or the mechanism states it too.
    """
    where = f"ask.regression({id!r})"
    law = "linear" if "bounds" in response else "logistic"
    parts: dict[str, Any] = {"norm": None if norm is None else decimal_of(norm)}
    parts["mechanism"] = mechanism_of(where, mechanism, epsilon)
    parts["model"] = model_of(f"{law}_regression", prior)
    fields = {"features": [dict(each) for each in features], "response": dict(response)}
    return {**stated_part(id, ask="record", text=text, **parts), **fields}


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
        The field, for `regression`.

    Raises:
        InputError: it has only one bound, or bounds and choices, or a unit but no bounds.
    """
    if unit and low is None:
        raise InputError(
            f"ask.feature({id!r}): unit is only for a number: give low and high",
            code="builder.unit_without_number",
        )
    if (low is None) != (high is None) or (low is not None and choices is not None):
        raise InputError(
            f"ask.feature({id!r}): a number has low and high; a choice has choices, and no bounds",
            code="builder.feature_choices_or_bounds",
        )
    if low is not None and high is not None:
        bounds, limits = [decimal_of(low), decimal_of(high)], [decimal_of(cut) for cut in cuts]
        return stated_part(id, text=text, unit=unit, bounds=bounds, cuts=limits)
    if choices is not None:
        return {**stated_part(id, text=text, ask="choice"), "choices": list(choices)}
    return stated_part(id, text=text, ask="yes_no")
