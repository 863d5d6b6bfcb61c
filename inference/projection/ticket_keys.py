"""The keys of a second study's tokens: an issuer signs one study's tokens with a key, and no other's."""

from __future__ import annotations

import json
from typing import Any

from ldp_client.documents.errors import InputError, StudyError, UsageError
from schemas import Study
from schemas.disk import read_bytes
from schemas.warnings import require_keys


def second_keys(first: Study, new_id: str, path: str | None) -> dict[str, Any] | None:
    """The block of keys in a file that `ldpkit tickets key` wrote; None for a study without tokens.

    With the first study's keys no report of the second would ever leave. Raises InputError, UsageError.
    """
    tickets = first.channel.tickets if first.channel is not None else None
    if tickets is None:
        if path is not None:
            raise UsageError(f"--tickets: study {first.id} takes no tokens", code="derive.no_tickets")
        return None
    advice = f"run `ldpkit tickets key {new_id} > tickets.json`, and add --tickets tickets.json"
    if path is None:
        raise UsageError(
            f"study {first.id} takes tokens, and {new_id} needs its own keys: {advice}",
            code="derive.ticket_keys_needed",
        )
    try:
        block: dict[str, Any] = json.loads(read_bytes(path))["tickets"]
        known = {key["key"] for key in first.document["channel"]["tickets"]["keys"]}
        is_first = any(key["key"] in known for key in block["keys"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{path}: is not what `ldpkit tickets key` prints: {advice}", code="derive.wrong_ticket_file"
        ) from None
    if is_first:
        raise InputError(
            f"{path}: has keys of the first study, {first.id}: {advice}",
            code="derive.ticket_keys_of_first_study",
        )
    try:
        # The second study has the first one's fields, and is searched for only after that.
        with_tokens(first, block)
    except StudyError as error:
        raise InputError(f"{path}: {error}: {advice}", code="derive.ticket_keys_invalid") from None
    return block


def with_tokens(second: Study, block: dict[str, Any] | None) -> Study:
    """The study with these keys. Raises StudyError if they do not go with it."""
    if block is None:
        return second
    document = second.document
    study = Study({**document, "channel": {**document["channel"], "tickets": block}})
    require_keys(study)
    return study
