"""The aggregator's client of one node: it sends the node operator's key, and retries passing failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import DocumentError, TransferError

# For one call, retries included: a node expands 100,000 shares of 10,000 numbers in well under a minute.
DEADLINE_SECONDS = 600.0
# The sum of ten million numbers.
MAX_ANSWER_BYTES = 1 << 27
Send = Callable[[str, str, bytes | None], bytes]


class NodeClient:
    """One node of a study. Every call may be repeated; a node answers the same again.

    Args:
        url: the node's address.
        study_id: the study.
        send: sends a request to the node with its operator's key: method, path and body; returns the body
            of the answer. It retries passing failures. Raises TransferError, which names the node.
    """

    def __init__(self, url: str, study_id: str, send: Send) -> None:
        self.url = url
        self._base = f"/v1/studies/{study_id}"
        self._send = send

    def document(self, version: int) -> bytes:
        """Return the canonical bytes of a version of the study as published there, also if it was deleted."""
        return self._call(f"?version={version}")

    def share_count(self) -> Any:
        """Return {"shares": how many}. With a wrong key, closing would be refused in the same way."""
        return self._parse(self._call("/shares/count"))

    def close(self) -> None:
        """Close the study: the node takes no further shares."""
        self._call("/close", b"")

    def report_ids(self) -> bytes:
        """Return the ids of all shares, 16 bytes each."""
        return self._call("/shares")

    def commit(self) -> Any:
        """Commit the node to its set of shares and to a nonce; return its statement."""
        return self._parse(self._call("/commitment", b""))

    def show(self, commitments: str) -> Any:
        """Return the nonce, for {"commitments": …} of all nodes."""
        return self._parse(self._call("/nonce", commitments.encode()))

    def drawing(self) -> Any:
        """Return the drawing of the set that the node is bound to, or None."""
        return self._parse(self._call("/drawing"))

    def confirm(self, drawing: str) -> Any:
        """Bind the node to the set that was drawn; return its statement."""
        return self._parse(self._call("/set", drawing.encode()))

    def total(self, set_digest: str) -> Any:
        """Return the sum over the set: {"statement": …, "total": base64}."""
        return self._parse(self._call("/sum", json.dumps({"set": set_digest}).encode()))

    def _parse(self, body: bytes) -> Any:
        try:
            return parse_json(body, DocumentError, MAX_ANSWER_BYTES)
        except DocumentError as error:
            raise TransferError(
                f"node {self.url} sent what is not valid: {error}", code="node.wrong_answer"
            ) from None

    def _call(self, path: str, body: bytes | None = None) -> bytes:
        return self._send("GET" if body is None else "POST", self._base + path, body)
