"""The base class of mechanisms for a record of features and a response: it reads answers into integers."""

from ldp_client.core.quantise import as_float, grid_index, signed_units, signed_units_of
from ldp_client.documents.errors import AnswerError
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ldp_client.documents.question import Field, Question


SIGNS = {"no": -1, False: -1, "yes": 1, True: 1}


class RecordMechanism(Mechanism):
    """A mechanism for a record of features and a response.

    features and response: the fields of the question. norm: the norm that clips the features, or None.
    binary: whether the response is a yes/no. places: the index of choices, by feature id. cuts: the
    boundaries of bins as floats, by feature id. Answers are compared with them: a grid would move fine cuts.
    """

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.response is not None
        self.features = question.features
        self.norm = question.norm
        self.response = question.response
        self.binary = question.response.bounds is None
        self.places = {field.id: Places(field.choices) for field in self.features if field.choices}
        self.cuts = {field.id: [float(cut) for cut in field.cuts] for field in self.features if field.cuts}
        fields = list(self.features)
        fields.append(self.response)
        # For each field: its name, its path in the answers, and a number's bounds as floats.
        self._asked = [(field, field.id, f"{self.field}.{field.id}", _limits(field)) for field in fields]
        self._names = [field.id for field in fields]
        # If all fields are numbers, one loop reads them.
        limits = [(name, path, found) for _, name, path, found in self._asked if found]
        self._numbers = [(name, path, low, high, high - low) for name, path, (low, high) in limits]
        self._all_numbers = len(self._numbers) == len(fields)

    def quantise_fields(self, answer: "Any", unit: int, weight: int) -> "tuple[list[int], int]":
        """Return features in −unit..unit or as levels, not clipped to the norm; response in −weight..weight.

        Raises AnswerError.
        """
        if not isinstance(answer, dict):
            raise AnswerError.say("core.record", self.field)
        at_once = unit == weight and self._all_numbers
        # A plain dict of the right length lacks a name only if the loop raises KeyError.
        if not (at_once and type(answer) is dict and len(answer) == len(self._numbers)):
            self._check_names(answer)
        if at_once:
            try:
                scaled = signed_units_of(answer, self._numbers, unit)
            except KeyError:
                self._check_names(answer)
                raise
            last = scaled.pop()
            return scaled, last
        twice = 2 * unit
        scaled = [
            grid_index(answer[name], limits, twice, path) - unit
            if limits
            else self._quantise_level(field, answer[name], unit, path)
            for field, name, path, limits in self._asked[:-1]
        ]
        field, name, path, limits = self._asked[-1]
        if limits:
            return scaled, signed_units(answer[name], limits, weight, path)
        return scaled, self._quantise_level(field, answer[name], weight, path)

    def _check_names(self, answer: "dict[str, Any]") -> None:
        for name in self._names:
            if name not in answer:
                raise AnswerError.say("core.missing", f"{self.field}.{name}")
        if len(answer) != len(self._names):
            raise AnswerError.say("core.unasked_field", self.field)

    def _quantise_level(self, field: "Field", value: "Any", size: int, path: str) -> int:
        """Return −size for no and size for yes; for a choice or bins, return the index."""
        if field.choices:
            return self._place(field, value, path)
        if field.cuts:
            number = as_float(value, path)
            return sum([number >= cut for cut in self.cuts[field.id]])
        sign = SIGNS.get(value) if isinstance(value, (str, bool)) else None
        if sign is None:
            raise AnswerError.say("core.yes_or_no", path)
        return sign * size

    def _place(self, field: "Field", value: "Any", name: str) -> int:
        """Return the index of a choice."""
        index = self.places[field.id].of(value) if isinstance(value, str) else -1
        if index < 0:
            raise AnswerError.say("core.one_of_choices", name, choices=len(field.choices))
        return index


def _limits(field: "Field") -> "Optional[tuple[float, float]]":
    """Return a number's bounds, or None if the number is cut into bins."""
    if field.bounds is None or field.cuts:
        return None
    return float(field.bounds[0]), float(field.bounds[1])
