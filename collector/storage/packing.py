"""A report's payloads as one run of bytes, of one size for all reports of a version.

Each mechanism's payload has one fixed size, so the payloads stand in the study's question order
with nothing between them, and the study alone says where each begins. In a study that asks each device
one question, a byte says which, and zeros make up the size of the longest payload. Public values stand in
front: of each field its value's place among those that the study lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client.documents.errors import ReportError
from ldp_client.documents.public import PublicField
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
    """Where each question's payload stands. sizes: (question id, bytes) in the study's order.

    ahead: bytes in front of the payloads, which public values take.
    """

    def __init__(self, sizes: Sequence[tuple[str, int]], ahead: int = 0) -> None:
        self.sizes = tuple(sizes)
        self.places: dict[str, slice] = {}
        self.ahead = ahead
        self.size = ahead
        for question_id, size in self.sizes:
            self.places[question_id] = slice(self.size, self.size + size)
            self.size += size

    def pack(self, payloads: Mapping[str, bytes]) -> bytes:
        """The payloads joined, without what stands in front; each must have its question's size."""
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

    def __init__(self, sizes: Sequence[tuple[str, int]], ahead: int = 0) -> None:
        super().__init__(sizes, ahead)
        start = ahead + 1
        self.places = {question_id: slice(start, start + size) for question_id, size in self.sizes}
        self.size = start + max(size for _, size in self.sizes)
        self.numbers = {question_id: number for number, (question_id, _) in enumerate(self.sizes)}

    def pack(self, payloads: Mapping[str, bytes]) -> bytes:
        """The only payload, which must have its question's size."""
        ((question_id, payload),) = payloads.items()
        return (bytes([self.numbers[question_id]]) + payload).ljust(self.size - self.ahead, b"\0")

    def find(self, packed: bytes, question_id: str) -> bytes | None:
        """The payload of one question, None where the report answers another."""
        asked = self.numbers.get(question_id) == packed[self.ahead]
        return packed[self.places[question_id]] if asked else None

    def split(self, packed: Sequence[bytes]) -> dict[str, NDArray[np.uint8]]:
        """The payloads of many reports by question id, each of shape (how many, bytes)."""
        rows = self._rows(packed)
        return {
            question_id: rows[rows[:, self.ahead] == number][:, self.places[question_id]]
            for question_id, number in self.numbers.items()
        }


class PublicPlaces:
    """The public values of a report: of each field one more than its value's place, 0 for none yet.

    size: bytes that they take. is_invited: whether an invitation has to carry some of them.
    """

    def __init__(self, fields: Sequence[PublicField]) -> None:
        self._fields = tuple(fields)
        self._widths = [(field.size.bit_length() + 7) // 8 for field in self._fields]
        self.size = sum(self._widths)
        self.is_invited = any(field.from_invitation for field in self._fields)

    def pack(self, values: Mapping[str, str]) -> bytes:
        """The values, which are their fields', in bytes."""
        numbers = [self._number(field, values) for field in self._fields]
        return b"".join([number.to_bytes(width, "big") for number, width in zip(numbers, self._widths)])

    @staticmethod
    def _number(field: PublicField, values: Mapping[str, str]) -> int:
        place = field.place(values[field.id]) if field.id in values else None
        return 0 if place is None else place + 1

    def unpack(self, packed: bytes) -> dict[str, str]:
        """The values that a stored report has, by field."""
        numbers = self._numbers(packed)
        return {field.id: field.value(n - 1) for field, n in zip(self._fields, numbers) if n}

    def is_whole(self, packed: bytes) -> bool:
        """Whether no value is still to come."""
        return all(self._numbers(packed))

    def agrees(self, sent: bytes, stored: bytes) -> bool:
        """Whether a report as it is sent is the one that is stored, which has what invitations carry."""
        values = zip(self._numbers(sent), self._numbers(stored))
        return sent[self.size :] == stored[self.size :] and all(n in (0, kept) for n, kept in values)

    def filled(self, packed: bytes, carried: Mapping[str, str]) -> bytes:
        """The report with what its invitation carries.

        Raises ReportError where the invitation lacks a value, or the report states another one.
        """
        values = self.unpack(packed)
        for field in self._fields:
            if not field.from_invitation:
                continue
            value = carried.get(field.id, "")
            if field.place(value) is None:
                raise ReportError(
                    f"public.{field.id}",
                    "the invitation carries no value of this field",
                    code="report.invitation_lacks_value",
                )
            if values.setdefault(field.id, value) != value:
                raise ReportError(
                    f"public.{field.id}",
                    "is another value than the invitation carries",
                    code="report.invitation_value_differs",
                )
        return self.pack(values) + packed[self.size :]

    def cells(self, packed: Sequence[bytes]) -> NDArray[np.int64]:
        """Of each report the number of its cell, the last field's values next to each other."""
        numbers = np.array([self._numbers(one) for one in packed], dtype=np.int64).reshape(len(packed), -1)
        sizes = [field.size for field in self._fields]
        found = np.zeros(len(packed), dtype=np.int64)
        for column, size in enumerate(sizes):
            found = found * size + numbers[:, column] - 1
        return found

    def _numbers(self, packed: bytes) -> list[int]:
        numbers, start = [], 0
        for width in self._widths:
            numbers.append(int.from_bytes(packed[start : start + width], "big"))
            start += width
        return numbers


def layout_of(study: Study, sizes: Mapping[str, int]) -> Layout:
    """The layout of a study's reports. sizes: {question id: bytes} in the study's order."""
    ahead = PublicPlaces(study.public).size
    return (OneQuestionLayout if study.ask_one else Layout)(list(sizes.items()), ahead)
