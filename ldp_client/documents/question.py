"""A question of a study, what a device knows of it, and sections: questions that are shown together."""

from typing import Any

from ldp_client.documents.catalogue import KINDS_OF_PRODUCTS, MECHANISMS, Fitting
from ldp_client.documents.channel import SecureSum
from ldp_client.documents.fields import (
    Boolean,
    Bounds,
    Constant,
    Decimal,
    Error,
    Identifier,
    Ignored,
    Integer,
)
from ldp_client.documents.rational import Rational
from ldp_client.documents.shapes import Either, ListOf, Record
from ldp_client.documents.spoken import Spoken

YES_NO = ("no", "yes")
# With more levels in a field, hardly any participants would be asked about each entry.
MOST_LEVELS = 16
MOST_FIELDS = 128
# A label for people instead of a field's id, and the unit of its number, such as hours.
_LABEL, _UNIT = Spoken(200), Spoken(40)
_NORM = Decimal(above="0.001", at_most="1000")

_NUMBER = Record({"id": Identifier(), "bounds": Bounds()}, {"text": _LABEL, "unit": _UNIT})
_CUT = Record(
    {"id": Identifier(), "bounds": Bounds()},
    {"text": _LABEL, "unit": _UNIT, "cuts": ListOf(Decimal(), 1, MOST_LEVELS - 1, repeats=True)},
)
_YES_NO = Record({"id": Identifier(), "ask": Constant("yes_no")}, {"text": _LABEL})
_CHOICE = Record(
    {"id": Identifier(), "ask": Constant("choice"), "choices": ListOf(Spoken(200), 2, MOST_LEVELS)},
    {"text": _LABEL},
)
# The response of a record: a number with bounds, or a yes/no.
_RESPONSE = Either(lambda value: _YES_NO if "ask" in value else _NUMBER, _NUMBER, _YES_NO)


def _feature_shape(value: dict[str, Any]) -> Record:
    if "ask" not in value:
        return _CUT
    return _YES_NO if value["ask"] == "yes_no" else _CHOICE


# A feature of a record: as its response, or one of a few choices; a number may be cut into bins.
_FEATURE = Either(_feature_shape, _CUT, _YES_NO, _CHOICE)


class _Count(Record):
    """{"count": N} for the whole numbers 0…N−1."""

    def read(self, value: Any, path: str, error: Error) -> Any:
        return range(Record.read(self, value, path, error)["count"])


_COUNT = _Count({"count": Integer(2, 1 << 20)})
_CHOICES = Either(lambda _: _COUNT, ListOf(Spoken(200), 2, 10000), _COUNT)


def _shape(ask: str, required: dict[str, Any], optional: dict[str, Any]) -> Record:
    head: dict[str, Any] = {"id": Identifier(), "ask": Constant(ask)}
    others: dict[str, Any] = {"text": Spoken(1000), "model": Ignored()}
    return Record({**head, **required, "mechanism": Fitting(MECHANISMS, ask)}, {**others, **optional})


# The fields of a question, by what it asks. `model` is for analysts: schemas.study reads it.
QUESTIONS = {
    # A number's refusal has a separate coin, which gets this share of epsilon.
    "number": _shape(
        "number",
        {"bounds": Bounds()},
        {"refusal": Record({"share": Decimal(above="0", below="1")}), "unit": _UNIT},
    ),
    # refusal: people may prefer not to say, one more choice inside the mechanism. ordered: the labels are a
    # scale, from its low end to its high end; noise and likelihood are the same as for any choice.
    "choice": _shape("choice", {"choices": _CHOICES}, {"refusal": Boolean(), "ordered": Boolean()}),
    "yes_no": _shape("yes_no", {}, {"refusal": Boolean()}),
    # Some mechanisms have no norm: see question_rules.
    "record": _shape(
        "record",
        {"features": ListOf(_FEATURE, 1, MOST_FIELDS, unique_by="id"), "response": _RESPONSE},
        {"norm": _NORM},
    ),
    "table": _shape(
        "table",
        {
            "features": ListOf(_NUMBER, 1, MOST_FIELDS, unique_by="id"),
            "norm": _NORM,
            "response": _NUMBER,
        },
        {},
    ),
}


class Field:
    """One field of a record: a number has bounds, a choice its choices, a yes/no neither.

    text: a label for people, instead of its id; unit: the unit of its number; "" if not stated.
    cuts: the boundaries of a number's bins, from low to high; empty if the number is not binned.
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.id: str = parsed["id"]
        self.text: str = parsed.get("text") or ""
        self.unit: str = parsed.get("unit") or ""
        self.bounds: tuple[Rational, Rational] | None = parsed.get("bounds")
        self.cuts: tuple[Rational, ...] = parsed.get("cuts") or ()
        self.choices: tuple[str, ...] = parsed.get("choices") or ()


class MechanismSpec:
    """A mechanism's name and stated parameters, as the study gives them.

    weights: {kind of product: weight} of sampled products; 1 for a kind that is not stated.
    products: the number of sampled products in a report.
    For tables: count_share (None: the number of records is public), average (1: none), intercept and
    fourth_moments.
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.name: str = parsed["name"]
        self.epsilon: Rational = parsed["epsilon"]
        self.delta: Rational = parsed.get("delta") or Rational(0)
        self.cells: int | None = parsed.get("cells")
        self.statistic: str = parsed.get("statistic") or ""
        self.share: Rational | None = parsed.get("share")
        self.response_share: Rational | None = parsed.get("response_share")
        self.of: str = parsed.get("of") or ""
        self.instantaneous_epsilon: Rational | None = parsed.get("instantaneous_epsilon")
        self.count_share: Rational | None = parsed.get("count_share")
        self.average: int = parsed.get("average") or 1
        self.intercept: bool = parsed.get("intercept") is not False
        self.fourth_moments: bool = parsed.get("fourth_moments") is True
        weights = parsed.get("weights") or {}
        self.weights: dict[str, int] = {kind: weights.get(kind) or 1 for kind in KINDS_OF_PRODUCTS}
        self.products: int = parsed.get("products") or 1


class Question:
    """One question of a study. Attributes that its kind does not have are None or empty.

    Args:
        parsed: the question's part of a study document, as QUESTIONS reads it.
        path: its path in the document, such as "questions[0]".
        protocol: the study's protocol, if it has one.

    Attributes:
        path: as given.
        id: its name within the study.
        protocol: as given.
        ask: "number" (has bounds), "choice" (choices), "yes_no" (choices are no, yes), "record" (features,
            norm, response) or "table" (the same fields, for a data holder's many records).
        text: the question's text; "" if the document has none.
        list_title: the title of the list, if the question is a box of a list; else "".
        bounds: the lowest and highest number, in the question's own unit.
        unit: the unit of a number, such as "hours"; "" if not stated.
        choices: labels, or range(count) if they are `numbered`.
        numbered: whether choices are numbers without labels.
        ordered: whether the labels are a scale, from its low end to its high one.
        features: the fields of a record, with their bounds.
        norm: the largest Euclidean norm of a record's features.
        response: the field of a record that a regression explains.
        fields: the features, and the response last.
        refusal: whether None, "prefer not to say", is a valid answer.
        refusal_share: the share of epsilon that the refusal's coin spends, for numbers; else None.
        mechanism: the mechanism's name and stated parameters.
        repeats: whether each version of the study may ask it again.
    """

    def __init__(self, parsed: dict[str, Any], path: str, protocol: SecureSum | None = None) -> None:
        self.path = path
        self.id: str = parsed["id"]
        self.protocol = protocol
        self.ask: str = parsed["ask"]
        self.text: str = parsed["text"] or ""
        self.list_title = ""
        self.unit: str = parsed.get("unit") or ""
        self.bounds: tuple[Rational, Rational] | None = parsed.get("bounds")
        self.choices: tuple[str, ...] | range = YES_NO if self.ask == "yes_no" else parsed.get("choices", ())
        self.numbered = isinstance(self.choices, range)
        self.ordered: bool = bool(parsed.get("ordered"))
        refusal = parsed.get("refusal")
        self.refusal: bool = bool(refusal)
        self.refusal_share: Rational | None = refusal["share"] if isinstance(refusal, dict) else None
        self.features: tuple[Field, ...] = tuple(Field(item) for item in parsed.get("features", ()))
        self.norm: Rational | None = parsed.get("norm")
        self.response: Field | None = Field(parsed["response"]) if "response" in parsed else None
        self.fields = self.features + (() if self.response is None else (self.response,))
        self.mechanism = MechanismSpec(parsed["mechanism"])
        self.repeats = self.mechanism.name == "memoized"

    def __repr__(self) -> str:
        return f"Question({self.id!r}, {self.ask}, {self.mechanism.name}, epsilon {self.mechanism.epsilon})"

    @property
    def full_text(self) -> str:
        """The text that participants read; for a box of a list, it begins with the list's title."""
        return below(self.list_title, self.text or self.id) if self.list_title else self.text


MOST_SECTIONS = 100
# A title that ends with such a mark needs no colon before the text that follows.
ENDS = "?:.!…؟？：。"
_SECTION = Record(
    {"title": Spoken(200), "questions": ListOf(Identifier(), 1, MOST_SECTIONS)}, {"any_of": Boolean()}
)
SECTIONS = ListOf(_SECTION, 1, MOST_SECTIONS, unique_by="title")


class Section:
    """Questions that are shown together.

    Args:
        parsed: the section's part of a study document.

    Attributes:
        title: the heading above the questions.
        questions: their ids, in the order in which they are shown.
        any_of: whether the title is the question, and its questions are a list of boxes to tick.
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.title: str = parsed["title"]
        self.questions: tuple[str, ...] = tuple(parsed["questions"])
        self.any_of: bool = bool(parsed["any_of"])


def below(title: str, text: str) -> str:
    """Return the full text of a box: the title of its list, then the box's own text."""
    ends = "" if title[-1] in ENDS else ":"
    return f"{title}{ends} {text}"
