"""CBOR as a device may write it: the shortest form, definite lengths (RFC 8949, section 4.2)."""

from __future__ import annotations

from typing import Any

from schemas import Report


def dump_cbor(value: Any) -> bytes:
    """A value of maps, lists, strings, bytes and unsigned integers in CBOR."""
    if isinstance(value, int):
        return _head(0, value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        return _head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(map(dump_cbor, value))
    pairs = [dump_cbor(key) + dump_cbor(member) for key, member in value.items()]
    return _head(5, len(value)) + b"".join(pairs)


def binary_document(report: Report) -> dict[str, Any]:
    """A report's document with byte strings where JSON has hexadecimal and base64."""
    document = report.to_document()
    binary = {"id": bytes.fromhex(report.id), "digest": bytes.fromhex(report.digest)}
    return {**document, **binary, "payloads": dict(report.payloads)}


def _head(kind: int, argument: int) -> bytes:
    if argument < 24:
        return bytes([kind << 5 | argument])
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * size:
            return bytes([kind << 5 | code]) + argument.to_bytes(size, "big")
    raise ValueError(argument)
