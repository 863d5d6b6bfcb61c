"""A report's payloads as one byte string, of one size for all reports of a version.

Each mechanism's payload has one fixed size. So the payloads follow each other in the study's question order,
and the study alone determines where each begins. In a study that asks each device one question, a byte names
the question, and zeros pad to the longest payload. Public values come first: for each field, the index of its
value in the study's list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ldp_client.documents.errors import ReportError
from ldp_client.documents.public import PublicField
from schemas import Study


class Layout:
    """The place of each question's payload. sizes: (question id, bytes) in the study's order.

    ahead: bytes before the payloads, for public values.
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
        """Join the payloads, without the public values; each must have its question's size."""
        return b"".join([payloads[question_id] for question_id in self.places])

    def find(self, packed: bytes, question_id: str) -> bytes | None:
        """Return the payload of one question, or None if the report has none."""
        return packed[self.places[question_id]] if question_id in self.places else None

    def split(self, packed: Sequence[bytes]) -> dict[str, NDArray[np.uint8]]:
        """Return the payloads of many reports by question id, each of shape (how many, bytes)."""
        rows = self._rows(packed)
        return {question_id: rows[:, place] for question_id, place in self.places.items()}

    def _rows(self, packed: Sequence[bytes]) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(len(packed), self.size)


class OneQuestionLayout(Layout):
    """The layout of a report that answers one question: its number in the study, then its payload."""

    def __init__(self, sizes: Sequence[tuple[str, int]], ahead: int = 0) -> None:
        super().__init__(sizes, ahead)
        start = ahead + 1
        self.places = {question_id: slice(start, start + size) for question_id, size in self.sizes}
        self.size = start + max(size for _, size in self.sizes)
        self.numbers = {question_id: number for number, (question_id, _) in enumerate(self.sizes)}

    def pack(self, payloads: Mapping[str, bytes]) -> bytes:
        """Pack the only payload, which must have its question's size."""
        ((question_id, payload),) = payloads.items()
        return (bytes([self.numbers[question_id]]) + payload).ljust(self.size - self.ahead, b"\0")

    def find(self, packed: bytes, question_id: str) -> bytes | None:
        """Return the payload of one question, or None if the report answers another question."""
        asked = self.numbers.get(question_id) == packed[self.ahead]
        return packed[self.places[question_id]] if asked else None

    def asked(self, packed: bytes) -> str:
        """Return the question that the report answers."""
        return self.sizes[packed[self.ahead]][0]

    def split(self, packed: Sequence[bytes]) -> dict[str, NDArray[np.uint8]]:
        """Return the payloads of many reports by question id, each of shape (how many, bytes)."""
        rows = self._rows(packed)
        return {
            question_id: rows[rows[:, self.ahead] == number][:, self.places[question_id]]
            for question_id, number in self.numbers.items()
        }


class PublicPlaces:
    """The public values of a report: for each field its value's index plus one, or 0 for none yet.

    size: bytes that they take. has_ticketed: whether a ticket has to carry some of them.
    """

    def __init__(self, fields: Sequence[PublicField]) -> None:
        self._fields = tuple(fields)
        self._widths = [(field.size.bit_length() + 7) // 8 for field in self._fields]
        self.size = sum(self._widths)
        self.has_ticketed = any(field.from_ticket for field in self._fields)

    def pack(self, values: Mapping[str, str]) -> bytes:
        """Return the values in bytes; each must be a value of its field."""
        numbers = [self._number(field, values) for field in self._fields]
        return b"".join([number.to_bytes(width, "big") for number, width in zip(numbers, self._widths)])

    @staticmethod
    def _number(field: PublicField, values: Mapping[str, str]) -> int:
        place = field.place(values[field.id]) if field.id in values else None
        return 0 if place is None else place + 1

    def unpack(self, packed: bytes) -> dict[str, str]:
        """Return the public values of a stored report, by field."""
        numbers = self._numbers(packed)
        return {field.id: field.value(n - 1) for field, n in zip(self._fields, numbers) if n}

    def is_whole(self, packed: bytes) -> bool:
        """Return True if no value is missing."""
        return all(self._numbers(packed))

    def agrees(self, sent: bytes, stored: bytes) -> bool:
        """Return True if the sent report equals the stored report, apart from its ticket's values."""
        values = zip(self._numbers(sent), self._numbers(stored))
        return sent[self.size :] == stored[self.size :] and all(n in (0, kept) for n, kept in values)

    def filled(self, packed: bytes, carried: Mapping[str, str]) -> bytes:
        """Return the report with the values of its ticket.

        Raises ReportError if the ticket lacks a value, or the report states another value.
        """
        values = self.unpack(packed)
        for field in self._fields:
            if not field.from_ticket:
                continue
            value = carried.get(field.id, "")
            if field.place(value) is None:
                raise ReportError(
                    f"public.{field.id}",
                    "the ticket carries no value of this field",
                    code="report.ticket_lacks_value",
                )
            if values.setdefault(field.id, value) != value:
                raise ReportError(
                    f"public.{field.id}",
                    "is another value than the ticket carries",
                    code="report.ticket_value_differs",
                )
        return self.pack(values) + packed[self.size :]

    def cells(self, packed: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the number of each report's cell; adjacent numbers differ in the last field's value."""
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
    """Return the layout of a study's reports. sizes: {question id: bytes} in the study's order."""
    ahead = PublicPlaces(study.public).size
    return (OneQuestionLayout if study.sample_one_question else Layout)(list(sizes.items()), ahead)
