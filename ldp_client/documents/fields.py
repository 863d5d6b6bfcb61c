"""The single values that documents are made of. Each reads a plain JSON value and describes itself.

`read(value, path, error)` returns the parsed value or raises `error(path, problem)`.
`json_schema()` returns the same rule as JSON Schema, so that both have one definition.
"""

import re
from binascii import a2b_base64
from collections.abc import Callable
from operator import gt, le, lt
from typing import Any

from ldp_client.documents.canonical import to_base64
from ldp_client.documents.errors import DocumentError
from ldp_client.documents.rational import DECIMAL, Rational

Error = type[DocumentError]


def printable(name: Any, most: int = 64) -> str:
    """Return a foreign name or text for a message: shortened, in plain ASCII, on one line."""
    return "".join([character if " " <= character <= "~" else "?" for character in str(name)[:most]])


class Checked:
    """A value that is read as it is, if `is_good` accepts it.

    problem: what is wrong with any other value. schema: the same rule as JSON Schema.
    """

    def __init__(self, is_good: Callable[[Any], bool], problem: str, schema: dict[str, Any]) -> None:
        self._is_good = is_good
        self._problem = problem
        self._schema = schema

    def read(self, value: Any, path: str, error: Error) -> Any:
        if not self._is_good(value):
            raise error(path, self._problem)
        return value

    def json_schema(self) -> dict[str, Any]:
        return dict(self._schema)


class Matching(Checked):
    """A string of at most `longest` characters that matches a regular expression as a whole.

    pattern: means the same in Python and in JSON Schema. problem: what is wrong with any other value.
    """

    def __init__(self, pattern: str, problem: str, longest: int = 0, **schema: str) -> None:
        super().__init__(self._matches, problem, {"type": "string", "pattern": f"^{pattern}$", **schema})
        self._pattern = pattern
        self._longest = longest
        if longest:
            self._schema["maxLength"] = longest

    def _matches(self, value: Any) -> bool:
        is_short = isinstance(value, str) and (not self._longest or len(value) <= self._longest)
        return is_short and re.fullmatch(self._pattern, value) is not None


class Text:
    """A string of 1 to `longest` characters, none of them U+0000."""

    def __init__(self, longest: int) -> None:
        self.longest = longest

    def read(self, value: Any, path: str, error: Error) -> str:
        if not isinstance(value, str):
            raise error(path, "must be a string")
        if not 1 <= len(value) <= self.longest:
            raise error(path, f"must have 1 to {self.longest} characters")
        _check_characters(value, path, error)
        return value

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[^\\u0000]*$", "minLength": 1, "maxLength": self.longest}


def _check_characters(value: str, path: str, error: Error) -> None:
    try:
        value.encode("utf-8")
    except UnicodeError:
        raise error(path, "contains half of a surrogate pair") from None
    if "\0" in value:
        # Many programs end a text there and would confuse two labels.
        raise error(path, "contains the character U+0000")


class Identifier(Matching):
    """1 to 64 lower-case letters, digits, dots, hyphens and underscores, a letter or digit first."""

    def __init__(self) -> None:
        problem = "must be 1 to 64 of a-z 0-9 . _ - and start with a letter or digit"
        super().__init__("[a-z0-9][a-z0-9._-]{0,63}", problem)


class Hex(Matching):
    """Exactly `length` lower-case hexadecimal digits."""

    def __init__(self, length: int) -> None:
        super().__init__(f"[0-9a-f]{{{length}}}", f"must be {length} lower-case hexadecimal digits")


class Base64:
    """Bytes in padded base64. Each value has one spelling: the decoded bytes must encode to the same text."""

    def read(self, value: Any, path: str, error: Error) -> bytes:
        try:
            decoded = a2b_base64(value) if isinstance(value, str) else None
        except ValueError:
            decoded = None
        if decoded is None or to_base64(decoded) != value:
            raise error(path, "must be padded base64")
        return decoded

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "contentEncoding": "base64"}


class Constant(Checked):
    """One fixed string."""

    def __init__(self, value: str) -> None:
        super().__init__(lambda other: bool(other == value), f"must be {value!r}", {"const": value})


class Boolean(Checked):
    """true or false."""

    def __init__(self) -> None:
        super().__init__(lambda value: isinstance(value, bool), "must be true or false", {"type": "boolean"})


# Nested deeper, a value could exhaust the stack of a small device.
MOST_NESTED = 16
# Above this, JavaScript rounds integers.
LARGEST_INTEGER = (1 << 53) - 1


class Ignored:
    """A part of a document that another reader needs; this one only checks that it has one canonical text."""

    def read(self, value: Any, path: str, error: Error) -> None:
        self._check(value, path, error, MOST_NESTED)

    def _check(self, value: Any, path: str, error: Error, left: int) -> None:
        if left == 0:
            raise error(path, f"is nested more than {MOST_NESTED} deep")
        if isinstance(value, dict):
            # Platforms sort other characters in different orders.
            if any(printable(key, len(key)) != key for key in value):
                raise error(path, "has a name that is not of printable ASCII characters")
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                self._check(item, path, error, left - 1)
        elif isinstance(value, str):
            _check_characters(value, path, error)
        elif not isinstance(value, (bool, int)) or abs(value) > LARGEST_INTEGER:
            raise error(path, "contains null or a number that is not an integer: write it as a string")

    def json_schema(self) -> dict[str, Any]:
        return {}


class OneOf(Checked):
    """One of a few fixed strings."""

    def __init__(self, values: tuple[str, ...]) -> None:
        super().__init__(
            lambda value: isinstance(value, str) and value in values,
            f"must be one of {', '.join(values)}",
            {"enum": list(values)},
        )


class Integer(Checked):
    """A whole number from `low` to `high`."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(
            lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
            f"must be a whole number from {low} to {high}",
            {"type": "integer", "minimum": low, "maximum": high},
        )


class Decimal:
    """An exact decimal in a string, optionally strictly above and at most / strictly below a limit."""

    def __init__(
        self, above: str | None = None, at_most: str | None = None, below: str | None = None
    ) -> None:
        stated = (("above", above, gt), ("at most", at_most, le), ("below", below, lt))
        self._limits = [(word, limit, holds) for word, limit, holds in stated if limit is not None]
        self._range = " and ".join([f"{word} {limit}" for word, limit, _ in self._limits])

    def read(self, value: Any, path: str, error: Error) -> Rational:
        if not isinstance(value, str):
            raise error(path, 'must be a decimal number in a string, such as "0.5"')
        try:
            number = Rational.parse(value)
        except ValueError:
            raise error(path, f"{value[:40]!r} is not a decimal number") from None
        if not all([holds(number, Rational.parse(limit)) for _, limit, holds in self._limits]):
            raise error(path, f"{value} is out of range: must be {self._range}")
        return number

    def json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string", "pattern": f"^{DECIMAL}$", "maxLength": 40}
        if self._range:
            schema["description"] = self._range
        return schema


INFINITY = float("inf")


class Bounds:
    """Two decimals, the lower one first."""

    def read(self, value: Any, path: str, error: Error) -> tuple[Rational, Rational]:
        if not isinstance(value, list) or len(value) != 2:
            raise error(path, "must be two decimals: [low, high]")
        low = Decimal().read(value[0], f"{path}[0]", error)
        high = Decimal().read(value[1], f"{path}[1]", error)
        if not low < high:
            raise error(path, f"low {value[0]} must be below high {value[1]}")
        # Answers are compared with the bounds as floats.
        first, last = float(low), float(high)
        if not (-INFINITY < first < INFINITY and last - first < INFINITY):
            raise error(path, "low, high and high − low must be finite floats")
        if not (first < last and last - first > 0):
            raise error(path, "low and high are too close to tell apart")
        return low, high

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": Decimal().json_schema(), "minItems": 2, "maxItems": 2}


class Day(Matching):
    """A calendar day, YYYY-MM-DD."""

    def __init__(self) -> None:
        super().__init__("[0-9]{4}-[0-9]{2}-[0-9]{2}", "must be a day, YYYY-MM-DD", format="date")

    def _matches(self, value: Any) -> bool:
        from datetime import date

        try:
            return super()._matches(value) and bool(date.fromisoformat(value))
        except ValueError:
            return False
