"""The shape of a study document: its fields and their values."""

from ldp_client.documents.asker import ASKER
from ldp_client.documents.catalogue import ASKS, MECHANISMS, MODELS, NO_LAW
from ldp_client.documents.channel import CHANNEL
from ldp_client.documents.fields import (
    Boolean,
    Bounds,
    Constant,
    Day,
    Decimal,
    Identifier,
    Integer,
    ListOf,
    OneOf,
    Record,
    Tagged,
)
from ldp_client.documents.paper import PAPER
from ldp_client.documents.protocol import PROTOCOL
from ldp_client.documents.public import PUBLIC
from ldp_client.documents.sections import SECTIONS
from ldp_client.documents.spoken import FIELD, LANGUAGES, Spoken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.documents.catalogue import Entry
    from ldp_client.documents.fields import Error

FORMAT = "ldpkit.study/1"
# Who answers: one person about herself, or a data holder about its many records.
RESPONDENTS = ("person", "holder")

# With more levels in a field, hardly any participants would be asked about each entry.
MOST_LEVELS = 16
# A label for people instead of a field's id, and the unit of its number, such as hours.
_LABEL: "dict[str, Any]" = {"text": Spoken(200)}
_UNIT = Spoken(40)
_MEASURED: "dict[str, Any]" = {"unit": _UNIT}
_OF_NUMBER = dict(_LABEL)
_OF_NUMBER.update(_MEASURED)
_OF_CUT = dict(_OF_NUMBER)
_OF_CUT["cuts"] = ListOf(Decimal(), 1, MOST_LEVELS - 1, repeats=True)
_NUMBER_FIELD = Record({"id": Identifier(), "bounds": Bounds()}, _OF_NUMBER)
_YES_NO_FIELD = Record({"id": Identifier(), "ask": Constant("yes_no")}, _LABEL)
_CUT_FIELD = Record({"id": Identifier(), "bounds": Bounds()}, _OF_CUT)
_CHOICE_FIELD = Record(
    {"id": Identifier(), "ask": Constant("choice"), "choices": ListOf(Spoken(200), 2, MOST_LEVELS)}, _LABEL
)

_LABELS = ListOf(Spoken(200), 2, 10000)
_COUNT = Record({"count": Integer(2, 1 << 20)})


class _Field:
    """A field of a record: a number with bounds, or a yes/no."""

    def read(self, value: "Any", path: str, error: "Error") -> "dict[str, Any]":
        shape = _YES_NO_FIELD if isinstance(value, dict) and "ask" in value else _NUMBER_FIELD
        return shape.read(value, path, error)

    def json_schema(self) -> "dict[str, Any]":
        return {"oneOf": [_NUMBER_FIELD.json_schema(), _YES_NO_FIELD.json_schema()]}


class _Feature(_Field):
    """A field of a record, or one of a few choices; a number may be cut into bins."""

    def read(self, value: "Any", path: str, error: "Error") -> "dict[str, Any]":
        asked = value.get("ask") if isinstance(value, dict) else None
        if asked == "yes_no" or not isinstance(value, dict):
            return _Field.read(self, value, path, error)
        return (_CUT_FIELD if "ask" not in value else _CHOICE_FIELD).read(value, path, error)

    def json_schema(self) -> "dict[str, Any]":
        shapes = (_CUT_FIELD, _YES_NO_FIELD, _CHOICE_FIELD)
        return {"oneOf": [shape.json_schema() for shape in shapes]}


class _Choices:
    """Labels, or {"count": N} for the whole numbers 0…N−1."""

    def read(self, value: "Any", path: str, error: "Error") -> "tuple[str, ...] | range":
        if isinstance(value, dict):
            return range(_COUNT.read(value, path, error)["count"])
        labels: "tuple[str, ...]" = _LABELS.read(value, path, error)
        return labels

    def json_schema(self) -> "dict[str, Any]":
        return {"oneOf": [_LABELS.json_schema(), _COUNT.json_schema()]}


class _Fitting:
    """A catalogue entry that fits a kind of question. It is looked up on each read: entries may be added."""

    def __init__(self, catalogue: "dict[str, Entry]", ask: str) -> None:
        self.catalogue = catalogue
        self.ask = ask

    def _shape(self) -> Tagged:
        shapes = {name: self.catalogue[name].shape for name in self.catalogue}
        fits = [name for name in self.catalogue if self.ask in self.catalogue[name].asks]
        return Tagged("name", shapes, fits, f"a question that asks {self.ask!r}")

    def read(self, value: "Any", path: str, error: "Error") -> "Any":
        return self._shape().read(value, path, error)

    def json_schema(self) -> "dict[str, Any]":
        return self._shape().json_schema()


class _Question(Record):
    """A question of one kind. A number question without a model gets the model NO_LAW."""

    def read(self, value: "Any", path: str, error: "Error") -> "dict[str, Any]":
        found = Record.read(self, value, path, error)
        if found["model"] is None:
            found["model"] = {"name": NO_LAW, "prior": None}
        return found


def _question_shape(ask: str, own: "dict[str, Any]") -> Record:
    required = {"id": Identifier(), "ask": Constant(ask)}
    required.update(own)
    required["mechanism"] = _Fitting(MECHANISMS, ask)
    optional: "dict[str, Any]" = {"text": Spoken(1000)}
    optional.update(_OWN_OPTIONAL_FIELDS.get(ask, {}))
    (optional if ask == "number" else required)["model"] = _Fitting(MODELS, ask)
    return _Question(required, optional)


_OWN_FIELDS: "dict[str, dict[str, Any]]" = {
    "number": {"bounds": Bounds()},
    "choice": {"choices": _Choices()},
    "yes_no": {},
    "record": {
        "features": ListOf(_Feature(), 1, 128, unique_by="id"),
        "response": _Field(),
    },
    "table": {
        "features": ListOf(_NUMBER_FIELD, 1, 128, unique_by="id"),
        "norm": Decimal(above="0.001", at_most="1000"),
        "response": _NUMBER_FIELD,
    },
}
# Sampled products and a record's marginal moments have no norm, other record mechanisms do: see study_rules.
_OWN_OPTIONAL_FIELDS: "dict[str, dict[str, Any]]" = {
    "record": {"norm": Decimal(above="0.001", at_most="1000")},
    # refusal: people may prefer not to say, one more choice inside the mechanism. ordered: the labels are a
    # scale, from its low end to its high end; noise and likelihood are the same as for any choice.
    "choice": {"refusal": Boolean(), "ordered": Boolean()},
    "yes_no": {"refusal": Boolean()},
    # A number's refusal has a separate coin, which gets this share of epsilon.
    "number": {"refusal": Record({"share": Decimal(above="0", below="1")}), "unit": _UNIT},
}

QUESTION = Tagged("ask", {ask: _question_shape(ask, _OWN_FIELDS[ask]) for ask in ASKS})
_OPTIONAL: "dict[str, Any]" = {
    FIELD: LANGUAGES,
    "purpose": Spoken(5000),
    "opens": Day(),
    "closes": Day(),
    "sample_one_question": Boolean(),
    "sections": SECTIONS,
    "public": PUBLIC,
    "paper": PAPER,
    "protocol": PROTOCOL,
    "channel": CHANNEL,
    "respondent": OneOf(RESPONDENTS),
}
_OPTIONAL.update(ASKER)
STUDY = Record(
    {
        "format": Constant(FORMAT),
        "id": Identifier(),
        "version": Integer(1, 10**6),
        "title": Spoken(200),
        "questions": ListOf(QUESTION, 1, 100, unique_by="id"),
    },
    _OPTIONAL,
)
