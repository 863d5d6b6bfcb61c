"""A report's payloads as one run of bytes, of one size for all reports of a version.

Each mechanism's payload has one fixed size, so the payloads stand in the study's question order
with nothing between them, and the study alone says where each begins. In a study that asks each device
one question, a byte says which, and zeros make up the size of the longest payload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas import Study


class PackedReport(NamedTuple):
    """A report as it is stored. id: 16 bytes. Two are equal exactly when their reports are.

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

    def find(self, packed: bytes, question_id: str) -> bytes | None:
        """The payload of one question, None where the report has none."""
        return packed[self.places[question_id]] if question_id in self.places else None

    def split(self, packed: Sequence[bytes]) -> dict[str, NDArray[np.uint8]]:
        """The payloads of many reports by question id, each of shape (how many, bytes)."""
        rows = self._rows(packed)
        return {question_id: rows[:, place] for question_id, place in self.places.items()}

    def _rows(self, packed: Sequence[bytes]) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(len(packed), self.size)


class OneQuestionLayout(Layout):
    """Where the payload stands of the one question that a report answers: behind its number in the study."""

    def __init__(self, sizes: Sequence[tuple[str, int]]) -> None:
        super().__init__(sizes)
        self.places = {question_id: slice(1, 1 + size) for question_id, size in self.sizes}
        self.size = 1 + max(size for _, size in self.sizes)
        self.numbers = {question_id: number for number, (question_id, _) in enumerate(self.sizes)}

    def pack(self, payloads: Mapping[str, bytes]) -> bytes:
        """The only payload, which must have its question's size."""
        ((question_id, payload),) = payloads.items()
        return (bytes([self.numbers[question_id]]) + payload).ljust(self.size, b"\0")

    def find(self, packed: bytes, question_id: str) -> bytes | None:
        """The payload of one question, None where the report answers another."""
        asked = self.numbers.get(question_id) == packed[0]
        return packed[self.places[question_id]] if asked else None

    def split(self, packed: Sequence[bytes]) -> dict[str, NDArray[np.uint8]]:
        """The payloads of many reports by question id, each of shape (how many, bytes)."""
        rows = self._rows(packed)
        return {
            question_id: rows[rows[:, 0] == number][:, self.places[question_id]]
            for question_id, number in self.numbers.items()
        }


def layout_of(study: Study, sizes: Mapping[str, int]) -> Layout:
    """The layout of a study's reports. sizes: {question id: bytes} in the study's order."""
    return (OneQuestionLayout if study.ask_one else Layout)(list(sizes.items()))
