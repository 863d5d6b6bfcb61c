"""What a server's refusal means to the program that asked: its reason, and whether to ask again."""

from __future__ import annotations

import json
import urllib.error

from ldp_client.device.exchange import MOST_CHARACTERS
from ldp_client.documents.errors import TransferError
from ldp_client.documents.fields import printable

MAX_PROBLEM_BYTES = 1 << 16
TEMPORARY = (408, 425, 429, 500, 502, 503, 504, 507)


def refusal(error: urllib.error.HTTPError, who: str, passing: type[TransferError]) -> TransferError:
    """The error to raise for an HTTP error status, `passing` where a later attempt may succeed."""
    with error:
        detail = _problem_detail(error.read(MAX_PROBLEM_BYTES))
    kind = passing if error.code in TEMPORARY else TransferError
    return kind(f"{who} answered {error.code}: {printable(detail or error.reason, MOST_CHARACTERS)}")


def _problem_detail(body: bytes) -> str | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    detail = document.get("detail") if isinstance(document, dict) else None
    return detail if isinstance(detail, str) else None
