"""The base class of mechanisms for a record of features and a response: it reads answers into integers."""

from typing import Any

from ldp_client.core.quantise import UNIT, as_float, signed_units
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Field, Question
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import Places

SIGNS = {"no": -1, False: -1, "yes": 1, True: 1}


class RecordMechanism(Mechanism):
    """A mechanism for a record of features and a response.

    features and response: the fields of the question. norm: the norm that clips the features, or None.
    binary: whether the response is a yes/no. places: the index of choices, by feature id. cuts: the
    boundaries of bins as floats, by feature id. Answers are compared with them: a grid would move fine cuts.
    units: the integers for a scaled feature of 1, and for a scaled response of 1.
    """

    units = (UNIT, UNIT)

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        assert question.response is not None
        self.features = question.features
        self.norm = question.norm
        self.response = question.response
        self.binary = question.response.bounds is None
        self.places = {field.id: Places(field.choices) for field in self.features if field.choices}
        self.cuts = {field.id: [float(cut) for cut in field.cuts] for field in self.features if field.cuts}
        # For each field: its path in the answers, and a number's bounds as floats, or None.
        self._asked = [(field, f"{self.field}.{field.id}", _limits(field)) for field in question.fields]

    def quantise_fields(self, answer: Any) -> tuple[list[int], int]:
        """Return features in units or as levels, not clipped to the norm, and the response in units.

        A level is an index for a choice or bins, and plus or minus one unit for a yes/no. Raises AnswerError.
        """
        if not isinstance(answer, dict):
            raise AnswerError.say("core.record", self.field)
        for field, path, _ in self._asked:
            if field.id not in answer:
                raise AnswerError.say("core.missing", path)
        if len(answer) != len(self._asked):
            raise AnswerError.say("core.unasked_field", self.field)
        unit, weight = self.units
        scaled = []
        for field, path, limits in self._asked:
            size, value = weight if field is self.response else unit, answer[field.id]
            if limits:
                scaled.append(signed_units(value, limits, size, path))
            elif field.choices:
                index = self.places[field.id].of(value) if isinstance(value, str) else -1
                if index < 0:
                    raise AnswerError.say("core.one_of_choices", path, choices=len(field.choices))
                scaled.append(index)
            elif field.cuts:
                number = as_float(value, path)
                scaled.append(sum(number >= cut for cut in self.cuts[field.id]))
            else:
                sign = SIGNS.get(value) if isinstance(value, (str, bool)) else None
                if sign is None:
                    raise AnswerError.say("core.yes_or_no", path)
                scaled.append(sign * size)
        response = scaled.pop()
        return scaled, response


def _limits(field: Field) -> tuple[float, float] | None:
    """Return a number's bounds, or None if the number is cut into bins."""
    if field.bounds is None or field.cuts:
        return None
    return float(field.bounds[0]), float(field.bounds[1])
