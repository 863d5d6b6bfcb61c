"""Public fields: values that a report carries without noise next to its noisy answers, such as a region."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.fields import Bounds, Constant, Decimal, Error, Identifier, Text
from ldp_client.documents.rational import Rational
from ldp_client.documents.shapes import Either, ListOf, MapOf, Record
from ldp_client.documents.spoken import Spoken

MOST_FIELDS = 16
MOST_CHOICES = 1000
MOST_VALUES = 1_000_000
# With these limits, each value has one short spelling without an exponent.
MOST_PLACES = 9
LARGEST = 10**12
TICKET = "ticket"
# The rounding error of a float that is accepted, as a fraction of a step.
_TOLERANCE = Fraction(1, 1000)

_OPTIONAL: dict[str, Any] = {"text": Spoken(1000), "source": Constant(TICKET)}
_CHOICE = Record({"id": Identifier(), "choices": ListOf(Spoken(200), 2, MOST_CHOICES)}, _OPTIONAL)


class _Number(Record):
    """A number on the grid low, low + step, …, high."""

    def read(self, value: Any, path: str, error: Error) -> dict[str, Any]:
        found = Record.read(self, value, path, error)
        low, high = found["bounds"]
        for name, number in (("bounds[0]", low), ("bounds[1]", high), ("step", found["step"])):
            if (number * 10**MOST_PLACES).denominator != 1 or abs(number) > LARGEST:
                problem = f"must have at most {MOST_PLACES} decimals, and be within ±{LARGEST}"
                raise error(f"{path}.{name}", problem)
        steps = (high - low) / found["step"]
        if steps.denominator != 1:
            raise error(f"{path}.step", "must divide high − low into a whole number of steps")
        if steps >= MOST_VALUES:
            raise error(f"{path}.step", f"is too small: a field has at most {MOST_VALUES} values")
        return found


_NUMBER = _Number({"id": Identifier(), "bounds": Bounds(), "step": Decimal(above="0")}, _OPTIONAL)
_FIELD = Either(lambda value: _NUMBER if "bounds" in value else _CHOICE, _CHOICE, _NUMBER)
PUBLIC = ListOf(_FIELD, 1, MOST_FIELDS, unique_by="id")


# A report's {public field id: value}. The study lists the values of each field.
PUBLIC_VALUES = MapOf(Text(200), MOST_FIELDS)


class PublicField:
    """One public field of a study. Attributes that its kind does not have are None or empty.

    Args:
        parsed: the field's part of a study document, as PUBLIC reads it.

    Attributes:
        id: its name within the study, different from all question ids.
        text: the question's text; "" if the document has none.
        choices: the labels of a choice.
        bounds: the lowest and highest value of a number.
        step: the distance between neighbouring values of a number.
        longest: the most bytes that a value takes in a report.
        from_ticket: whether the ticket carries the value, so that the device need not ask.
        size: the number of values.
    """

    def __init__(self, parsed: dict[str, Any]) -> None:
        self.id: str = parsed["id"]
        self.text: str = parsed["text"] or ""
        self.choices: tuple[str, ...] = parsed.get("choices", ())
        self.bounds: tuple[Rational, Rational] | None = parsed.get("bounds")
        self.step: Rational | None = parsed.get("step")
        self.from_ticket: bool = parsed["source"] == TICKET
        self.size = len(self.choices)
        self.longest = max(self.length(label) for label in self.choices) if self.choices else 0
        self._places = {label: place for place, label in enumerate(self.choices)}
        if self.bounds is not None and self.step is not None:
            low, high = self.bounds
            self.size = int((high - low) / self.step) + 1
            # An upper bound: each part of a number at its longest, even if no single value has all of them.
            places = max(len(str(number).partition(".")[2]) for number in (low, self.step))
            whole = max(len(str(number).lstrip("-").partition(".")[0]) for number in (low, high))
            self.longest = 2 + (low < 0) + whole + (1 + places if places else 0)

    @staticmethod
    def length(value: str) -> int:
        """Count the bytes that a value takes in a report.

        Args:
            value: the value.

        Returns:
            The number of bytes, with quotes and escapes.
        """
        return len(canonical_json(value).encode("utf-8"))

    def value(self, place: int) -> str:
        """Return the value at an index, in the only spelling that reports use.

        Args:
            place: the index, 0 to size − 1.

        Returns:
            The label; or the number as a decimal without exponent or needless zeros.
        """
        if self.bounds is None or self.step is None:
            return self.choices[place]
        return str(Rational(self.bounds[0] + self.step * place))

    def place(self, value: str) -> int | None:
        """Find a report's value among the field's values.

        Args:
            value: as the report spells it.

        Returns:
            Its index; None if the field has no such value, or if the spelling differs.
        """
        if self.choices:
            return self._places.get(value)
        found = self._nearest(value)
        return found if found is not None and self.value(found) == value else None

    def value_of(self, answer: Any) -> str:
        """Convert a person's answer to the value that is sent.

        Args:
            answer: a label of a choice; a number, or a decimal in a string. A float that is not
                a whole number is rounded to a value at most a thousandth of a step away.

        Returns:
            The value, as `value` spells it.

        Raises:
            AnswerError: the answer is not a value of the field; the error names the field.
        """
        if self.choices:
            if isinstance(answer, str) and answer in self._places:
                return answer
            raise AnswerError.say("core.public_choice", self.id)
        # Few floats are exactly on a decimal grid.
        is_inexact = isinstance(answer, float) and answer % 1 != 0
        index = self._nearest(answer, _TOLERANCE if is_inexact else Fraction(0))
        if index is None:
            assert self.bounds is not None
            facts = {"low": self.bounds[0], "high": self.bounds[1], "step": self.step}
            raise AnswerError.say("core.public_number", self.id, **facts)
        return self.value(index)

    def _nearest(self, stated: Any, tolerance: Fraction = Fraction(0)) -> int | None:
        """Return the index of a number, or of its text in any spelling. tolerance: in steps."""
        assert self.bounds is not None
        assert self.step is not None
        try:
            number = Rational.parse(str(stated))
        except ValueError:
            # No number, or an integer with more digits than Python converts to text.
            return None
        steps = (number - self.bounds[0]) / self.step
        place = floor(steps + Fraction(1, 2))
        return place if abs(steps - place) <= tolerance and 0 <= place < self.size else None


def wrong_value(
    fields: Sequence[PublicField], values: dict[str, str], invited: bool = False
) -> tuple[str, str] | None:
    """Return (field, problem) of the first value that is wrong, or None if all are right.

    invited: a ticket still adds the fields that it carries, so that they may be missing.
    """
    known = {field.id: field for field in fields}
    for name in sorted(values):
        if name not in known:
            return name, "is no public field that may be given here"
        if known[name].place(values[name]) is None:
            return name, "is not one of the values that the study lists"
    for field in fields:
        if field.id not in values and not (invited and field.from_ticket):
            return field.id, "is missing"
    return None
