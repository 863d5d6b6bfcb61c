"""Reading CBOR (RFC 8949) in the part that reports need: unsigned integers, strings, arrays and maps.

Tags, floats, null, negative and indefinite-length items have no place in a report and are refused,
so that nothing in a body can build an object of another type, a cycle or a huge number.
"""

from __future__ import annotations

from typing import Any

from schemas.errors import DocumentError

MAX_DEPTH = 8
_SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
_UNSIGNED, _BYTES, _TEXT, _ARRAY, _MAP = 0, 2, 3, 4, 5


def parse_cbor(body: bytes) -> Any:
    """The one value that a body is. Raises DocumentError for anything else."""
    try:
        value, end = _read(body, 0, MAX_DEPTH)
    except (IndexError, ValueError) as error:
        raise DocumentError("", f"not well-formed CBOR of the accepted kinds: {error}") from None
    if end != len(body):
        raise DocumentError("", "more bytes follow the first value")
    return value


def _read(body: bytes, start: int, depth: int) -> tuple[Any, int]:
    kind, argument, at = _read_head(body, start)
    if kind == _UNSIGNED:
        return argument, at
    if kind in (_BYTES, _TEXT):
        return _read_string(body, at, argument, kind)
    if argument > len(body) - at:
        raise ValueError("a length is beyond the end")
    if depth == 0:
        raise ValueError("nested too deeply")
    if kind == _ARRAY:
        return _read_array(body, at, argument, depth - 1)
    return _read_map(body, at, argument, depth - 1)


def _read_head(body: bytes, at: int) -> tuple[int, int, int]:
    """An item's major type and argument, and where the rest of it begins."""
    first = body[at]
    kind, argument = first >> 5, first & 31
    at += 1
    if kind not in (_UNSIGNED, _BYTES, _TEXT, _ARRAY, _MAP):
        raise ValueError("an item of another kind")
    if argument < 24:
        return kind, argument, at
    if argument not in _SIZES:
        raise ValueError("an item of indefinite length")
    size = _SIZES[argument]
    if at + size > len(body):
        raise ValueError("an item is cut off")
    return kind, int.from_bytes(body[at : at + size], "big"), at + size


def _read_string(body: bytes, at: int, length: int, kind: int) -> tuple[bytes | str, int]:
    content = body[at : at + length]
    if len(content) != length:
        raise ValueError("a length is beyond the end")
    return (content if kind == _BYTES else content.decode("utf-8")), at + length


def _read_array(body: bytes, at: int, length: int, depth: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(length):
        item, at = _read(body, at, depth)
        items.append(item)
    return items, at


def _read_map(body: bytes, at: int, length: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    for _ in range(length):
        key, at = _read(body, at, depth)
        if not isinstance(key, str) or key in found:
            raise ValueError("a key is not a string or stands twice")
        found[key], at = _read(body, at, depth)
    return found, at
