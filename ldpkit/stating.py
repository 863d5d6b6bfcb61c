"""Convert Python values to the parts of a study document that `ask` builds."""

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from ldp_client.documents.errors import InputError, StudyError
from schemas import Study

Number = int | float | str | Decimal
Mechanism = str | Mapping[str, Any]
# A text, or a text for each of the study's languages: {"en": …, "de": …}.
Spoken = str | Mapping[str, str]


def stated_part(id: str, **parts: Any) -> dict[str, Any]:
    """Return a question, or a field of one, with the parts that are given. `study_of` checks them all."""
    return {"id": id, **{name: part for name, part in parts.items() if part}}


def study_of(document: dict[str, Any]) -> Study:
    """Return the study of a document. Raises InputError, which names a question by its id."""
    try:
        return Study(document)
    except StudyError as error:
        where = error.field
        for index, question in enumerate(document["questions"]):
            name = question.get("id") if isinstance(question, Mapping) else question
            if where.startswith(f"questions[{index}]"):
                where = where.replace(f"questions[{index}]", f"question {name!r}")
        raise InputError(
            f"study({document['id']!r}): {where}: {error.problem}", code="builder.study_invalid"
        ) from None


def mechanism_of(where: str, stated: Mechanism, epsilon: Number) -> dict[str, Any]:
    """Return a mechanism's part of a document. Raises InputError if it states epsilon too."""
    fields = {"name": stated} if isinstance(stated, str) else as_text(stated)
    if "epsilon" in fields:
        raise InputError(
            f"{where}: the mechanism states epsilon too: give it once, as an argument",
            code="builder.mechanism_twice",
        )
    return {"name": fields.pop("name", ""), "epsilon": decimal_of(epsilon), **fields}


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
        return {name: as_text(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_text(part) for part in value]
    return decimal_of(value) if isinstance(value, float | Decimal) else value
