"""Convert Python values to the parts of a study document that `ask` builds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

from ldp_client.documents.errors import InputError, StudyError
from ldp_client.documents.study import FORMAT
from schemas import Study

Number = int | float | str | Decimal
Mechanism = str | Mapping[str, Any]
# A text, or a text for each of the study's languages: {"en": …, "de": …}.
Spoken = str | Mapping[str, str]
# The builder's argument names for fields of a document.
CALLED = {"mechanism.name": "mechanism", "model.name": "model", "bounds[0]": "low", "bounds[1]": "high"}


def question_of(builder: str, id: str, ask: str, text: Spoken, own: dict[str, Any]) -> dict[str, Any]:
    """Return a question, checked in a study by itself. Raises InputError."""
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


def study_of(document: dict[str, Any]) -> Study:
    """Return the study of a document. Raises InputError, which names a question by its id."""
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
    """Return a document's sections from {title: ids}. Any other value is left for the document's checks."""
    if not isinstance(stated, Mapping):
        return stated
    listed = {title: list(ids) if isinstance(ids, tuple | Iterator) else ids for title, ids in stated.items()}
    return [{"title": title, "questions": ids} for title, ids in listed.items()]


def labels_of(part: Mapping[str, Any]) -> list[Any]:
    """Return all labels of a question, and of the fields of its record."""
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
    """Return a mechanism's part of a document. Raises InputError if it contradicts another argument."""
    own = {"name": stated} if isinstance(stated, str) else as_text(stated)
    added = {"epsilon": decimal_of(epsilon)} | ({} if delta is None else {"delta": decimal_of(delta)})
    added |= ({"weights": dict(weights)} if weights else {}) | (
        {} if products is None else {"products": products}
    )
    for name, value in added.items():
        if name in own and not _is_same(own[name], value):
            both = f"the mechanism states {own[name]!r}, but the argument is {value!r}"
            raise InputError(f"{where}: {name}: {both}. Give it once.", code="builder.mechanism_twice")
    if products == 1:
        # 1 is the document's default.
        del added["products"]
    return {"name": own.pop("name", ""), **added, **own}


def _is_same(one: Any, other: Any) -> bool:
    """Return True if both are the same value, or the same number in any spelling."""
    try:
        return one == other or Decimal(one) == Decimal(other)
    except (ArithmeticError, TypeError, ValueError):
        return False


def model_of(name: str, prior: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a model by its name, with its prior if it is given."""
    return {"name": name, **({"prior": as_text(prior)} if prior else {})}


def decimal_of(value: Any) -> Any:
    """Return a number as a document's text. Other values are left for the document's checks to reject."""
    if isinstance(value, float) and isfinite(value):
        # The shortest text for this float, such as 0.1, without an exponent, which documents reject.
        return format(Decimal(float.__repr__(value)), "f").removesuffix(".0")
    return value if isinstance(value, bool) else str(value)


def as_text(value: Any) -> Any:
    """Return a part of a document with its numbers as text."""
    if isinstance(value, Mapping):
        return {name: as_text(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_text(one) for one in value]
    return decimal_of(value) if isinstance(value, float | Decimal) else value


def roughly(value: Number) -> float:
    """Return a float to compare with; 0 if the value is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def day_of(value: str | date | None) -> str | None:
    """Return a day as a document's text."""
    return value.isoformat() if isinstance(value, date) else value
