"""Reading CBOR (RFC 8949) in the part that reports need: unsigned integers, strings, arrays and maps.

Tags, floats, null, negative and indefinite-length items have no place in a report and are refused,
so that nothing in a body can build an object of another type, a cycle or a huge number.
"""

from __future__ import annotations

from typing import Any

from ldp_client.documents.errors import DocumentError

MAX_DEPTH = 8
_SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
_UNSIGNED, _BYTES, _TEXT, _ARRAY, _MAP = 0, 2, 3, 4, 5


class TooManyValuesError(DocumentError):
    """A body stands for more values than are kept in memory."""


def parse_cbor(body: bytes, most: int) -> Any:
    """The one value that a body is, with up to `most` values in it.

    Raises DocumentError for anything else, TooManyValuesError for more.
    """
    reader = _Reader(body, most)
    try:
        value = reader.read(MAX_DEPTH)
    except (IndexError, ValueError) as error:
        raise DocumentError("", f"not well-formed CBOR of the accepted kinds: {error}") from None
    if reader.at != len(body):
        raise DocumentError("", "more bytes follow the first value")
    return value


class _Reader:
    """Reads up to `most` values from `body`: one byte of it can become an object of seventy."""

    def __init__(self, body: bytes, most: int) -> None:
        self.at = 0
        self._body = body
        self._most = self._left = most

    def read(self, depth: int) -> Any:
        kind, argument = self._read_head()
        if kind == _UNSIGNED:
            return argument
        if kind in (_BYTES, _TEXT):
            return self._read_string(argument, kind)
        if argument > len(self._body) - self.at:
            raise ValueError("a length is beyond the end")
        if depth == 0:
            raise ValueError("nested too deeply")
        self._left -= argument if kind == _ARRAY else 2 * argument
        if self._left < 0:
            raise TooManyValuesError("", f"has more than {self._most} values")
        if kind == _ARRAY:
            return [self.read(depth - 1) for _ in range(argument)]
        return self._read_map(argument, depth - 1)

    def _read_head(self) -> tuple[int, int]:
        """An item's major type and argument."""
        first = self._body[self.at]
        kind, argument = first >> 5, first & 31
        self.at += 1
        if kind not in (_UNSIGNED, _BYTES, _TEXT, _ARRAY, _MAP):
            raise ValueError("an item of another kind")
        if argument < 24:
            return kind, argument
        if argument not in _SIZES:
            raise ValueError("an item of indefinite length")
        return kind, int.from_bytes(self._take(_SIZES[argument]), "big")

    def _read_string(self, length: int, kind: int) -> bytes | str:
        content = self._take(length)
        return content if kind == _BYTES else content.decode("utf-8")

    def _read_map(self, length: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(length):
            key = self.read(depth)
            if not isinstance(key, str) or key in found:
                raise ValueError("a key is not a string or stands twice")
            found[key] = self.read(depth)
        return found

    def _take(self, length: int) -> bytes:
        """The next bytes, so many."""
        start, self.at = self.at, self.at + length
        if self.at > len(self._body):
            raise ValueError("a length is beyond the end")
        return self._body[start : self.at]
