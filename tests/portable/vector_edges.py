"""Coins at the edge of a threshold: one that is just below, and one that is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.portable.vector_draws import draw

WORD = 1 << 32
# Bits for each choice need 32 strings of this size.
LARGEST_PAYLOAD = 16


def edge_draws(mechanisms: dict[str, Any], draws: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Two answers of each study with each edge. draws: the other draws with their outcomes."""
    for study, mechanism in mechanisms.items():
        taken = [entry["answer"] for entry in draws if entry["study"] == study and "payload" in entry]
        distinct = {json.dumps(answer): answer for answer in taken}
        for answer in list(distinct.values())[:2]:
            for head in edge_heads(mechanism):
                yield draw(study, answer, "edge", head)


def edge_heads(mechanism: Any) -> Iterator[bytes]:
    """Bytes whose coin is the threshold less 1, or the threshold."""
    name = mechanism.name
    if name == "memoized":
        yield from edge_heads(mechanism.first)
        size = 32 * mechanism.payload_size if mechanism.of == "sue" else 8
        for head in _edges(mechanism.of, mechanism.again, mechanism.payload_size):
            yield bytes(size) + head
    elif name in ("randomized_response", "subset_selection", "hadamard", "oue", "sue"):
        yield from _edges(name, mechanism.threshold, mechanism.payload_size)
    elif hasattr(mechanism, "threshold"):
        for head in _edges(name, mechanism.threshold, mechanism.payload_size):
            yield bytes(_before_coin(mechanism)) + head


def _edges(name: str, threshold: int, size: int) -> Iterator[bytes]:
    for coin in (threshold - 1, threshold):
        if name not in ("oue", "sue"):
            yield coin.to_bytes(4, "big")
        elif size <= LARGEST_PAYLOAD:
            # The strings hold the complements of the digits of a fraction, the lowest digit first.
            yield b"".join((b"\0" if coin >> digit & 1 else b"\xff") * size for digit in range(32))


def _before_coin(mechanism: Any) -> int:
    """How many bytes are read before the coin."""
    if mechanism.name == "olh":
        return 12
    if mechanism.name == "sampled_products":
        return 4 + 8 * mechanism.signs
    return 12 * (len(mechanism.features) if mechanism.name == "gaussian_record" else 1)
