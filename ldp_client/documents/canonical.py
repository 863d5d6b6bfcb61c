"""JSON in and canonical JSON out: one document, one sequence of bytes.

Canonical form: UTF-8, keys sorted, no spaces, the escapes of JSON.stringify (RFC 8785), and only
objects, arrays, strings, integers and booleans, so that no float ever enters signed bytes.
"""

from binascii import b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.documents.errors import DocumentError

_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def canonical_json(value: "Any") -> str:
    """Return the canonical JSON text of a plain value."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([canonical_json(item) for item in value]) + "]"
    if isinstance(value, dict):
        pairs = [_quote(key) + ":" + canonical_json(value[key]) for key in sorted(value)]
        return "{" + ",".join(pairs) + "}"
    raise TypeError(f"{type(value)} is not allowed in a canonical document")


def _quote(text: str) -> str:
    if text and min(text) >= " " and '"' not in text and "\\" not in text:
        # Fast path for nearly all labels: a study may have ten thousand of them in fifty languages.
        return f'"{text}"'
    escaped = [
        _SHORT_ESCAPES.get(character) or (f"\\u{ord(character):04x}" if ord(character) < 32 else character)
        for character in text
    ]
    return '"' + "".join(escaped) + '"'


def to_base64(content: bytes) -> str:
    """Encode bytes in the only base64 spelling that a canonical document has: padded, on one line."""
    return b2a_base64(content).decode().strip()


def parse_json(text: "str | bytes", error: "type[DocumentError]", max_bytes: int) -> "Any":
    """Parse JSON. Raise `error` unless it is one well-formed value of at most `max_bytes`.

    Duplicate keys are rejected if the platform's json module can report them.
    """
    if len(text) > max_bytes:
        raise error("", f"larger than {max_bytes} bytes")
    try:
        decoded = text if isinstance(text, str) else bytes(text).decode("utf-8")
        return _load(decoded)
    except _DuplicateKeyError as duplicate:
        raise error("", f"key {str(duplicate)[:80]!r} occurs twice in one object") from None
    except (ValueError, RuntimeError) as problem:  # RuntimeError: nested too deeply
        raise error("", "not well-formed JSON in UTF-8" + _place(problem)) from None


def parse_canonical(text: str) -> "Any":
    """Parse the output of `canonical_json`. The value is new and shares no part with other values."""
    return _load(text)


def _place(problem: Exception) -> str:
    """Return where CPython's parser stopped and why, without the text itself; "" for other parsers."""
    line = getattr(problem, "lineno", 0)
    return f": line {line}, column {problem.colno}: {problem.msg}" if line else ""  # type: ignore[attr-defined]


class _DuplicateKeyError(Exception):
    pass


def _load(text: str) -> "Any":
    import json  # deferred: it loads re and enum, a third of a process's start time

    try:
        return json.loads(text, object_pairs_hook=_object)
    except TypeError:  # MicroPython's json has no hooks
        return json.loads(text)


def _object(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(key)
        found[key] = value
    return found
