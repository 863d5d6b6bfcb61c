"""JSON in and canonical JSON out: one document, one sequence of bytes.

Canonical form: UTF-8, keys sorted, no spaces, the escapes of JSON.stringify (RFC 8785), and only
objects, arrays, strings, integers and booleans, so that no float ever enters signed bytes.
"""

import json
from binascii import b2a_base64
from json.encoder import encode_basestring
from typing import Any

from ldp_client.documents.errors import DocumentError


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of a plain value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([canonical_json(item) for item in value]) + "]"
    if isinstance(value, dict):
        pairs = [f"{encode_basestring(key)}:{canonical_json(value[key])}" for key in sorted(value)]
        return "{" + ",".join(pairs) + "}"
    raise TypeError(f"{type(value)} is not allowed in a canonical document")


def to_base64(content: bytes) -> str:
    """Encode bytes in the only base64 spelling that a canonical document has: padded, on one line."""
    return b2a_base64(content, newline=False).decode()


def parse_json(text: str | bytes, error: type[DocumentError], max_bytes: int) -> Any:
    """Parse JSON. Raise `error` unless it is one well-formed value of at most `max_bytes`.

    Duplicate keys are rejected.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise error("", f"key {key[:80]!r} occurs twice in one object")
            found[key] = value
        return found

    if len(text) > max_bytes:
        raise error("", f"larger than {max_bytes} bytes")
    try:
        decoded = text if isinstance(text, str) else str(text, "utf-8")
        return json.loads(decoded, object_pairs_hook=unique)
    except json.JSONDecodeError as problem:
        # The text itself may be an answer.
        place = f": line {problem.lineno}, column {problem.colno}: {problem.msg}"
    except (ValueError, RecursionError):
        place = ""
    raise error("", f"not well-formed JSON in UTF-8{place}")
