"""Reports in CBOR: the same documents, but with byte strings for ids, digests and payloads."""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any

HEX_FIELDS = ("id", "digest")


def plain_batch(document: Any) -> Any:
    """A batch as it would stand in JSON; what is no batch is left for the checks that follow."""
    if not isinstance(document, dict) or not isinstance(document.get("reports"), list):
        return document
    return {**document, "reports": [plain_report(member) for member in document["reports"]]}


def plain_report(document: Any) -> Any:
    """A report as it would stand in JSON: ids and digests in hexadecimal, payloads in base64."""
    if not isinstance(document, dict):
        return document
    plain = dict(document)
    for name in HEX_FIELDS:
        if isinstance(plain.get(name), bytes):
            plain[name] = plain[name].hex()
    if isinstance(plain.get("payloads"), dict):
        plain["payloads"] = {key: _base64(value) for key, value in plain["payloads"].items()}
    return plain


def _base64(value: Any) -> Any:
    return b2a_base64(value, newline=False).decode() if isinstance(value, bytes) else value
