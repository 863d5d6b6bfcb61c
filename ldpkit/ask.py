"""Build questions and studies in Python: the same documents as in JSON, without its quotes and nesting.

    from ldpkit import ask, study

    study("affairs", "Affairs", [ask.yes_no("ever", epsilon=1, text="Have you ever had an affair?")])

Each question is the same plain dictionary as in a study document. `study` checks them all.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date
from math import exp
from typing import Any

from ldp_client.documents.errors import InputError
from ldp_client.documents.study import FORMAT
from ldpkit.stating import (
    Mechanism,
    Number,
    Spoken,
    decimal_of,
    mechanism_of,
    model_of,
    stated_part,
    study_of,
)
from schemas import Study

__all__ = [
    "any_of", "choice", "feature", "number", "public", "regression", "section", "study", "yes_no",
]  # fmt: skip


def yes_no(
    id: str,
    *,
    epsilon: Number,
    text: Spoken = "",
    mechanism: Mechanism = "randomized_response",
    prior: Mapping[str, Any] | None = None,
    refusal: bool = False,
) -> dict[str, Any]:
    """Ask for yes or no.

    Args:
        id: of the question: a–z, 0–9 and . _ -.
        epsilon: how much a report may reveal, in nats.
        text: what people read.
        mechanism: its name, or its part of the document without epsilon, if it needs more.
        prior: {"p": distribution}, as in a study, instead of the default prior.
        refusal: whether people may prefer not to say, with the same privacy: it is one more choice.

    Returns:
        The question, for `study`.

    Raises:
        InputError: an argument has the wrong form, or the mechanism states it too.
    """
    stated = mechanism_of(f"ask.yes_no({id!r})", mechanism, epsilon)
    model = model_of("bernoulli", prior)
    return stated_part(id, ask="yes_no", text=text, mechanism=stated, model=model, refusal=bool(refusal))


def any_of(
    boxes: Mapping[str, Spoken], *, epsilon: Number, mechanism: Mechanism = "randomized_response"
) -> list[dict[str, Any]]:
    """Ask which of several things apply, by a yes/no for each box. The boxes are the items of a `section`.

    Args:
        boxes: {id: the box's label}.
        epsilon: how much a report may reveal about each box, in nats; the total is this times the boxes.
        mechanism: as for `yes_no`.

    Returns:
        The questions, for `study` and for `section(…, any_of=True)`.

    Raises:
        InputError: an argument has the wrong form, or the mechanism states it too.
    """
    if not isinstance(boxes, Mapping) or not boxes:
        raise InputError(
            'any_of(…) takes the boxes as {id: text}, such as {"asa": "Aspirin"}',
            code="builder.boxes_not_a_mapping",
        )
    return [yes_no(id, epsilon=epsilon, text=text, mechanism=mechanism) for id, text in boxes.items()]


def section(
    title: Spoken, questions: Iterable[str | Mapping[str, Any]], *, any_of: bool = False
) -> dict[str, Any]:
    """Show questions together, under a separate title.

    Args:
        title: the text above the questions; for boxes the question, such as "Which of these do you take?".
        questions: the questions or their ids, in the order in which they are shown.
        any_of: whether they are boxes, of which people tick any number, or state that none applies.

    Returns:
        The section, for `study(…, sections=[…])`.

    Raises:
        InputError: `questions` is not a list of questions or ids.
    """
    listed = (
        [] if isinstance(questions, str | Mapping) or not isinstance(questions, Iterable) else list(questions)
    )
    ids = [question.get("id") if isinstance(question, Mapping) else question for question in listed]
    if not ids or not all(isinstance(each, str) for each in ids):
        raise InputError(
            f"section({title!r}, …) takes a list of questions, or of their ids",
            code="builder.section_not_a_list",
        )
    return {"title": title, "questions": ids, **({"any_of": True} if any_of else {})}


def choice(
    id: str,
    choices: Sequence[Spoken] | int,
    *,
    epsilon: Number,
    text: Spoken = "",
    mechanism: Mechanism | None = None,
    prior: Mapping[str, Any] | None = None,
    refusal: bool = False,
    ordered: bool = False,
) -> dict[str, Any]:
    """Ask for a single choice out of several.

    Args:
        id: as for `yes_no`, and so are epsilon, text, prior and refusal.
        choices: their labels, or how many there are if they are numbers from 0.
        epsilon: see id.
        text: see id.
        mechanism: as for `yes_no`. The default is "randomized_response" up to about 3e^ε + 2 choices,
            and "subset_selection" for more, which is then the most accurate.
        prior: see id.
        refusal: see id.
        ordered: whether the labels are levels of a scale, from the low end to the high one.

    Returns:
        The question, for `study`.

    Raises:
        InputError: an argument has the wrong form, or the mechanism states it too.
    """
    if isinstance(choices, str | Mapping | Set):
        raise InputError(
            f"ask.choice({id!r}): choices must be a list of labels, not {choices!r}",
            code="builder.choices_not_a_list",
        )
    labels: Any = {"count": choices} if isinstance(choices, int) else list(choices)
    count = (choices if isinstance(choices, int) else len(labels)) + bool(refusal)
    stated = mechanism_of(f"ask.choice({id!r})", mechanism or "randomized_response", epsilon)
    try:
        reach = min(float(epsilon), 64)
    except (TypeError, ValueError):
        # `study` rejects it.
        reach = 0
    if mechanism is None and count > 3 * exp(reach) + 2:
        stated["name"] = "subset_selection"
    parts = {"mechanism": stated, "model": model_of("multinomial", prior)}
    options = {"refusal": bool(refusal), "ordered": bool(ordered)}
    return {**stated_part(id, ask="choice", text=text, **parts, **options), "choices": labels}


def number(
    id: str,
    low: Number,
    high: Number,
    *,
    epsilon: Number,
    text: Spoken = "",
    model: str = "",
    mechanism: Mechanism = "laplace",
    prior: Mapping[str, Any] | None = None,
    refusal: Number | None = None,
    unit: Spoken = "",
) -> dict[str, Any]:
    """Ask for a number between two bounds. Devices clip numbers beyond them.

    Args:
        id: as for `yes_no`, and so are epsilon, text and prior.
        low: the lower bound; write decimals as text, such as "0.1", if they must be exact.
        high: the upper bound.
        epsilon: see id.
        text: see id.
        model: a law, such as "normal" or "exponential" (default: fit without a law).
        mechanism: as for `yes_no`: "laplace", or {"name": "gaussian", "delta": "1e-6"}: with an added
            probability of at most delta, epsilon does not hold.
        prior: see id.
        refusal: if people may prefer not to say: the share of epsilon that reports whether there is a number.
            A share up to 0.5 leaves the number's noise as it is.
        unit: the number's unit, such as "hours"; people read it next to their answer.

    Returns:
        The question, for `study`.

    Raises:
        InputError: an argument has the wrong form, or the mechanism states it too.
    """
    bounds = [decimal_of(low), decimal_of(high)]
    parts: dict[str, Any] = {"mechanism": mechanism_of(f"ask.number({id!r})", mechanism, epsilon)}
    parts["model"] = model_of(model or "nonparametric", prior) if model or prior else None
    parts["refusal"] = None if refusal is None else {"share": decimal_of(refusal)}
    return stated_part(id, ask="number", text=text, unit=unit, bounds=bounds, **parts)


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


def public(
    id: str,
    choices: Sequence[Spoken] | None = None,
    *,
    low: Number | None = None,
    high: Number | None = None,
    step: Number = 1,
    text: Spoken = "",
    by_ticket: bool = False,
) -> dict[str, Any]:
    """Define a public field, which is sent without noise alongside the answers, such as a region or an age.

    Args:
        id: its name.
        choices: labels.
        low: instead of choices, a number's lower bound.
        high: its upper bound.
        step: from one number to the next.
        text: what people read.
        by_ticket: whether tickets carry its value, so people are not asked for it.

    Returns:
        The field, for `study(…, public=[…])`.

    Raises:
        InputError: it has neither choices nor both bounds.
    """
    if (choices is None) == (low is None or high is None):
        raise InputError(
            f"ask.public({id!r}): give choices, or low and high", code="builder.public_choices_or_bounds"
        )
    field = stated_part(id, text=text, source="ticket" if by_ticket else "")
    if choices is not None:
        return {**field, "choices": list(choices)}
    return {**field, "bounds": [decimal_of(low), decimal_of(high)], "step": decimal_of(step)}


def study(
    id: str,
    title: Spoken,
    questions: Iterable[Mapping[str, Any]] | Mapping[str, Any],
    *,
    version: int = 1,
    purpose: str = "",
    opens: str | date | None = None,
    closes: str | date | None = None,
    owner: Spoken = "",
    contact: str = "",
    ethics: Spoken = "",
    retention: int | None = None,
    sample_one_question: bool = False,
    sections: Iterable[Mapping[str, Any]] = (),
    public: Iterable[Mapping[str, Any]] = (),
    **fields: Any,
) -> Study:
    """Build a study of questions.

    Args:
        id: its name: a–z, 0–9 and . _ -.
        title: the title that people read.
        questions: made by this module's functions, or as in a study document.
        version: from 1; a published version never changes.
        purpose: why the study asks, for participants.
        opens: its first day (default: any day).
        closes: its last day.
        owner: who asks, as participants read it before the questions.
        contact: the owner's e-mail address, or a page that begins with https://.
        ethics: who approved the study, or why it needs no approval.
        retention: how many days reports are kept after `closes`, or without it after each report's arrival.
        sample_one_question: whether each device answers only one question, which it draws at random.
        sections: questions that are shown together, each made by `section`.
        public: fields that are sent without noise, made by `public`.
        **fields: other fields of the document, such as protocol, or languages=["en", "de"].

    Returns:
        The study, the same as from its JSON: `study.to_json()`.

    Raises:
        InputError: something does not fit; the error names the argument, or the question.
    """
    if not isinstance(title, str | Mapping):
        raise InputError(
            f"study({id!r}, …): the second argument is the title, and the third the questions",
            code="builder.arguments_swapped",
        )
    asked = [dict(questions)] if isinstance(questions, Mapping) else list(questions)
    document = {"format": FORMAT, "id": id, "version": version, "title": title, "questions": asked}
    stated: dict[str, Any] = {
        "owner": owner,
        "contact": contact,
        "ethics": ethics,
        "retention": {} if retention is None else {"days": retention},
        "purpose": purpose,
        "opens": opens and str(opens),
        "closes": closes and str(closes),
        "sample_one_question": sample_one_question,
        "sections": list(sections),
        "public": list(public),
        **fields,
    }
    return study_of({**document, **{name: value for name, value in stated.items() if value}})
