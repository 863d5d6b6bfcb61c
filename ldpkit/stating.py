"""From Python's values to the parts of a study document that `ask` builds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

from ldp_client.documents.errors import InputError, StudyError
from ldp_client.documents.study_shape import FORMAT
from schemas import Study

Number = int | float | str | Decimal
Mechanism = str | Mapping[str, Any]
# A text, or one for each of the study's languages: {"en": …, "de": …}.
Spoken = str | Mapping[str, str]
# What stands in a document is called so by who builds it.
CALLED = {"mechanism.name": "mechanism", "model.name": "model", "bounds[0]": "low", "bounds[1]": "high"}


def refusal_of(offered: bool) -> dict[str, Any]:
    """A document says nothing of what is not offered."""
    return {"refusal": offered} if offered else {}


def question_of(builder: str, id: str, ask: str, text: Spoken, own: dict[str, Any]) -> dict[str, Any]:
    """A question that is valid alone. Raises InputError."""
    found = {"id": id, "ask": ask, **({"text": text} if text else {}), **own}
    unnamed = {"format": FORMAT, "id": "one", "version": 1, "title": "One", "questions": [found]}
    texts = [one for one in (text, *labels_of(own)) if isinstance(one, Mapping)]
    if texts:
        unnamed["languages"] = sorted(texts[0])
    try:
        Study(unnamed)
    except StudyError as error:
        where = error.field.removeprefix("questions[0]").removeprefix(".")
        where = CALLED.get(where, where.removeprefix("mechanism.").removeprefix("model."))
        raise InputError(
            f"ask.{builder}({id!r}): {where}: {error.problem}", code="builder.question_invalid"
        ) from None
    return found


def who_asks_of(owner: Spoken, contact: str, ethics: Spoken, retention: int | None) -> dict[str, Any]:
    """What a study says of who asks; what is empty is not said."""
    kept = {} if retention is None else {"days": retention}
    return {"owner": owner, "contact": contact, "ethics": ethics, "retention": kept}


def study_of(document: dict[str, Any]) -> Study:
    """The study of a document. Raises InputError, which names a question by its id."""
    try:
        return Study(document)
    except StudyError as error:
        where = error.field
        for place, one in enumerate(document["questions"]):
            name = one.get("id") if isinstance(one, Mapping) else one
            if where.startswith(f"questions[{place}]"):
                where = where.replace(f"questions[{place}]", f"question {name!r}")
        raise InputError(
            f"study({document['id']!r}): {where}: {error.problem}", code="builder.study_invalid"
        ) from None


def sections_of(stated: Any) -> Any:
    """A document's sections, of {title: ids}; its rules refuse what is neither that nor good."""
    if not isinstance(stated, Mapping):
        return stated
    listed = {title: list(ids) if isinstance(ids, tuple | Iterator) else ids for title, ids in stated.items()}
    return [{"title": title, "questions": ids} for title, ids in listed.items()]


def labels_of(part: Mapping[str, Any]) -> list[Any]:
    """All labels of a question, and of the fields of its record."""
    fields = [one for one in (*part.get("features", ()), part.get("response")) if one]
    own = part.get("choices", ())
    return [*(own if isinstance(own, list) else ()), *[label for one in fields for label in labels_of(one)]]


def mechanism_of(
    where: str,
    stated: Mechanism,
    epsilon: Number,
    delta: Number | None = None,
    weights: Mapping[str, int] | None = None,
    products: int | None = None,
) -> dict[str, Any]:
    """A mechanism's part of a document. Raises InputError where it states other than what is beside it."""
    own = {"name": stated} if isinstance(stated, str) else as_text(stated)
    added = {"epsilon": decimal_of(epsilon)} | ({} if delta is None else {"delta": decimal_of(delta)})
    added |= ({"weights": dict(weights)} if weights else {}) | (
        {} if products is None else {"products": products}
    )
    for name, value in added.items():
        if name in own and not _is_same(own[name], value):
            both = f"the mechanism states {own[name]!r}, and beside it stands {value!r}"
            raise InputError(f"{where}: {name}: {both}: say it once", code="builder.mechanism_twice")
    if products == 1:
        # As it is where a document says nothing of it.
        del added["products"]
    return {"name": own.pop("name", ""), **added, **own}


def _is_same(one: Any, other: Any) -> bool:
    """Whether they are one value, a number in any spelling."""
    try:
        return one == other or Decimal(one) == Decimal(other)
    except (ArithmeticError, TypeError, ValueError):
        return False


def model_of(name: str, prior: Mapping[str, Any] | None) -> dict[str, Any]:
    """A model by its name, with a prior where one is stated."""
    return {"name": name, **({"prior": as_text(prior)} if prior else {})}


def record_of(
    features: Sequence[Mapping[str, Any]],
    response: Mapping[str, Any],
    mechanism: dict[str, Any],
    norm: Number | None,
) -> dict[str, Any]:
    """What a record's question has beside its model."""
    found: dict[str, Any] = {"features": [dict(one) for one in features], "response": dict(response)}
    found |= {} if norm is None else {"norm": decimal_of(norm)}
    return found | {"mechanism": mechanism}


def decimal_of(value: Any) -> Any:
    """Text of a number, as documents have it; what is none is left for the document's rules to refuse."""
    if isinstance(value, float) and isfinite(value):
        # The shortest text that is this float: 0.1, and no exponent that a document would not take.
        return format(Decimal(float.__repr__(value)), "f").removesuffix(".0")
    return value if isinstance(value, bool) else str(value)


def as_text(value: Any) -> Any:
    """A part of a document, its numbers as text."""
    if isinstance(value, Mapping):
        return {name: as_text(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_text(one) for one in value]
    return decimal_of(value) if isinstance(value, float | Decimal) else value


def roughly(value: Number) -> float:
    """A number to compare with, 0 of what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def day_of(value: str | date | None) -> str | None:
    """A day as documents have it."""
    return value.isoformat() if isinstance(value, date) else value
