"""The shape that a collector's answers to operators' commands must have, checked before printing.

Other members are ignored: a later release may have more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# No collector counts beyond this; such a number would fill a terminal.
MOST = 1 << 53
WORD = re.compile(r"[A-Za-z0-9_-]{16,128}")

Shape = Callable[[Any], Any]


def text(value: Any) -> Any:
    """Check a string."""
    return _checked(value, isinstance(value, str))


def number(value: Any) -> Any:
    """Check a count: a whole number."""
    return _checked(value, isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST)


def truth(value: Any) -> Any:
    """Check a boolean."""
    return _checked(value, isinstance(value, bool))


def word(value: Any) -> Any:
    """Check a key or a ticket as collectors make them, because it goes into headers and links."""
    return _checked(value, isinstance(value, str) and WORD.fullmatch(value) is not None)


def maybe(shape: Shape) -> Shape:
    """Return the shape of a value or null."""
    return lambda value: None if value is None else shape(value)


def list_of(shape: Shape) -> Shape:
    """Return the shape of a list of such values."""

    def read(value: Any) -> Any:
        return [shape(one) for one in _checked(value, isinstance(value, list))]

    return read


def counts(value: Any) -> Any:
    """Check whole numbers by name."""
    return {name: number(one) for name, one in _checked(value, isinstance(value, dict)).items()}


def members(**shapes: Shape) -> Shape:
    """Return the shape of an object that has these members, and perhaps others."""

    def read(value: Any) -> Any:
        _checked(value, isinstance(value, dict))
        return {**value, **{name: shape(value[name]) for name, shape in shapes.items()}}

    return read


def besides(shape: Shape, **values: Any) -> Shape:
    """Return the shape of an object that may lack some members; these values replace them."""
    return lambda value: shape({**values, **value} if isinstance(value, dict) else value)


def _checked(value: Any, is_right: bool) -> Any:
    if not is_right:
        raise ValueError("of another shape")
    return value


LISTED = {
    "id": text,
    "version": number,
    "title": text,
    "state": text,
    "opens": maybe(text),
    "closes": maybe(text),
    "days_left": maybe(number),
    "reports": number,
    "summed": truth,
}
KEPT = {
    "study": text,
    "version": number,
    "days": number,
    "until": maybe(text),
    "reports": number,
    "overdue": number,
}
RETENTION = members(retention=list_of(members(**KEPT)))
PUBLISHED = members(id=text, version=number, digest=text)
DELETED = members(deleted=number, complete=truth)
STUDIES = members(studies=list_of(members(**LISTED)))
STATUS = besides(
    members(
        **LISTED,
        by_day=list_of(members(day=text, reports=number)),
        versions=list_of(members(version=number, reports=number)),
        tickets_left=maybe(number),
        refused=counts,
        attention=list_of(text),
        retention=list_of(members(**KEPT)),
    ),
    retention=[],
)
VERSION = members(version=number)
TICKETS = members(tickets=list_of(word), warnings=list_of(text))
UPKEEP = members(wrong=list_of(members(study=text, version=number)))
KEY = besides(members(key=word, warnings=list_of(text)), warnings=[])
KEYS = members(
    keys=list_of(
        members(name=text, role=text, studies=maybe(list_of(text)), expires=maybe(text), used=maybe(text))
    )
)
ENTRIES = members(entries=list_of(members(at=text, key=text, action=text, study=maybe(text), detail=text)))
