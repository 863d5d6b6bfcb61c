"""A report's payloads as one run of bytes.

Each mechanism's payload has one fixed size, so the payloads stand in the study's question order
with nothing between them, and the study alone says where each begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class PackedReport(NamedTuple):
    """What is stored of a report. id: 16 bytes. Equal exactly when the reports are the same.

    A withdrawn report keeps its id, so that a late copy of it cannot come back, and loses its payloads.
    """

    id: bytes
    version: int
    payloads: bytes

    @property
    def withdrawn(self) -> bool:
        """Whether only the id is left; every mechanism's payload has at least one byte."""
        return not self.payloads


class Layout:
    """Where each question's payload stands. sizes: (question id, bytes) in the study's order."""

    def __init__(self, sizes: Sequence[tuple[str, int]]) -> None:
        self.sizes = tuple(sizes)
        self.places: dict[str, slice] = {}
        self.size = 0
        for question_id, size in self.sizes:
            self.places[question_id] = slice(self.size, self.size + size)
            self.size += size

    def pack(self, payloads: Mapping[str, bytes]) -> bytes:
        """The payloads joined; each must have its question's size."""
        return b"".join([payloads[question_id] for question_id in self.places])

    def unpack(self, packed: bytes) -> dict[str, bytes]:
        """The payloads by question id."""
        return {question_id: packed[place] for question_id, place in self.places.items()}
