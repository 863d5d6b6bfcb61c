"""Study documents that differ from one in a single part, and other spellings of the same document."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ldp_client.documents.errors import StudyError
from schemas import Study

OTHER_NAMES = {"oue": "sue", "exponential": "normal", "laplace": "discrete_laplace"}
PartPath = tuple[Any, ...]


def changed(value: Any) -> Any:
    """A value like this one, and another; a list is turned round."""
    if isinstance(value, list):
        return value[::-1]
    if isinstance(value, (bool, int)):
        return not value if isinstance(value, bool) else value + 1
    if value in OTHER_NAMES:
        return OTHER_NAMES[value]
    for last, other in {"0": "1", "1": "2", "5": "6", "6": "7"}.items():
        if value.endswith(last):
            return value[:-1] + other
    return f"{value}2"


def paths(value: Any, path: PartPath = ()) -> Iterator[PartPath]:
    """Where each part of a document stands."""
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths(value[key], (*path, key))
    if path:
        yield path


def edits(document: Any) -> Iterator[tuple[str, Any]]:
    """The document with each part changed or left out, and what was done to it."""
    for path in paths(document):
        for change in ("changed", "left out"):
            edited = copy.deepcopy(document)
            holder = edited
            for key in path[:-1]:
                holder = holder[key]
            if change == "left out":
                del holder[path[-1]]
            elif not isinstance(holder[path[-1]], dict):
                holder[path[-1]] = changed(holder[path[-1]])
            if edited != document:
                yield f"{'.'.join(map(str, path))} {change}", edited


def studies_beside(document: Any) -> Iterator[tuple[str, Study]]:
    """Every valid study that differs in one part."""
    for name, edited in edits(document):
        with suppress(StudyError):
            yield name, Study(edited)


def spellings(document: Any) -> dict[str, str]:
    """The same document in other words of JSON."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(sorted(value))}
        return [turned(item) for item in value] if isinstance(value, list) else value

    text = json.dumps(document)
    return {
        "keys in another order": json.dumps(turned(document)),
        "more blanks": json.dumps(document, indent=3).replace(":", " :\r\n\t"),
        "escapes": text.replace("/", "\\/").replace("o", "\\u006f"),
        "letters as they are": json.dumps(document, ensure_ascii=False),
    }
