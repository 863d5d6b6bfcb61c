"""A report as canonical JSON, and as the row that is stored: one version's bytes in both directions.

Each mechanism's payload has one fixed size. So the payloads of a row follow each other in the study's
question order, and the study alone determines where each begins. In a study that asks each device one
question, a byte names the question, and zeros pad to the longest payload. Public values come first: for each
field, the index of its value in the study's list.

Canonical reports of a version differ only in the id, the payloads and the public values. So one regular
expression reads them, without a JSON parser: a body that fits is exactly such a report, or a batch of them.
"""

import re
from binascii import a2b_base64, b2a_base64, hexlify, unhexlify
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import repeat
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from collector.store import PackedReport
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import ReportError
from ldp_client.documents.public import PublicField
from ldp_client.documents.report import ID_BYTES
from schemas import Report, Study

BATCH_HEAD = b'{"reports":['
BATCH_TAIL = b"]}"
DIGEST_HEAD = b'{"digest":"'
DIGEST_END = len(DIGEST_HEAD) + 64
NO_PAYLOADS = '","payloads":{}'
PAYLOADS_HEAD = b'","payloads":{'
PUBLIC_HEAD = b',"public":'
# An object of strings. No string of JSON has a bare quote, so that a string ends at the first one.
STRINGS = rb'\{(?:"(?:[^"\\]|\\.)*+"[:,]?)++\}'
# The last characters of canonical base64, by the bytes that are left over after groups of three.
BASE64_ENDS = (b"", b"[A-Za-z0-9+/][AQgw]==", b"[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=")
# Limits of each version's cache of public value texts: entries, and their bytes in all.
MOST_REMEMBERED = 8192
MOST_REMEMBERED_BYTES = 4 << 20

# PackedReport._make without its check of the length, which takes most of its time.
MAKE_REPORT: Callable[[tuple[bytes, int, bytes]], PackedReport] = partial(tuple.__new__, PackedReport)
Check = Callable[[bytes], None]


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

    size: bytes that they take. is_ticketed: whether tickets carry some of them.
    """

    def __init__(self, fields: Sequence[PublicField]) -> None:
        self._fields = tuple(fields)
        self._numbers = Struct(f">{len(self._fields)}I")
        self.size = self._numbers.size
        self.is_ticketed = any(field.from_ticket for field in self._fields)

    def pack(self, values: Mapping[str, str]) -> bytes:
        """Return the values in bytes; each must be a value of its field."""
        places = [field.place(values.get(field.id, "")) for field in self._fields]
        return self._numbers.pack(*[0 if place is None else place + 1 for place in places])

    def unpack(self, packed: bytes) -> dict[str, str]:
        """Return the public values of a stored report, by field."""
        numbers = self._numbers.unpack_from(packed)
        return {field.id: field.value(n - 1) for field, n in zip(self._fields, numbers) if n}

    def agrees(self, sent: bytes, stored: bytes) -> bool:
        """Return True if the sent report equals the stored report, apart from its ticket's values."""
        values = zip(self._numbers.unpack_from(sent), self._numbers.unpack_from(stored))
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
        numbers = np.array([self._numbers.unpack_from(payloads) for payloads in packed], dtype=np.int64)
        sizes = [field.size for field in self._fields]
        cells: NDArray[np.int64] = np.ravel_multi_index(tuple(numbers.T - 1), sizes)
        return cells


def digest_of(body: bytes) -> bytes:
    """Return the (first) digest of a canonical report or batch. Other bodies give arbitrary bytes."""
    start = len(BATCH_HEAD) if body.startswith(BATCH_HEAD) else 0
    return body[start + len(DIGEST_HEAD) : start + DIGEST_END]


class CanonicalForm:
    """The canonical JSON of one version's reports, each possibly followed by spaces.

    Devices pad a report with spaces to the longest size, so that its size reveals nothing.

    Args:
        study: the version.
        layout: the places of its payloads.
        public: the places of its public values.
        checks: {question id: the mechanism's check}.

    Attributes:
        size: the size of the longest report in bytes.
    """

    def __init__(
        self, study: Study, layout: Layout, public: PublicPlaces, checks: Mapping[str, Check]
    ) -> None:
        self._study = study
        self._layout = layout
        # JSON orders payloads by name, and a row by the study's order.
        names = sorted(layout.places)
        self._checks = [checks[name] for name in names]
        self._in_order = [names.index(name) for name in layout.places]
        self._members = {name: (f'"{name}":"'.encode(), layout.places[name]) for name in names}
        blank = Report("", study.id, study.version, study.digest, {}).to_json()
        self._head, self._tail = (part.encode() for part in blank.split(NO_PAYLOADS))
        self._public = public
        longest = len("{}") + sum(len(field.id) + len('"":,') + field.longest for field in study.public)
        self._longest = longest
        # The same few hundred combinations repeat. Strangers choose the texts, so the cache keeps only the
        # study's own values: other texts raise an error, and lru_cache keeps no errors.
        most = min(MOST_REMEMBERED, MOST_REMEMBERED_BYTES // longest)
        self._packed_values = lru_cache(maxsize=most)(self._pack_values)
        self._written_values = lru_cache(maxsize=most)(self._write_values)
        self._pattern = re.compile(self._expression(dict(layout.sizes)))
        rest = len(self._head) + 2 * ID_BYTES + len(NO_PAYLOADS) + len(self._tail)
        parts = [len(self._members[name][0]) + (size + 2) // 3 * 4 + 1 for name, size in layout.sizes]
        payloads = max(parts) if study.sample_one_question else sum(parts) + len(parts) - 1
        self.size = rest + payloads + (len(PUBLIC_HEAD) + longest if study.public else 0)

    def read(self, body: bytes) -> PackedReport | None:
        """Return the body's report, or None if no device could send this body in this form."""
        reports = self._read(body, b"", b"")
        return reports[0] if reports and len(reports) == 1 else None

    def read_batch(self, body: bytes) -> list[PackedReport] | None:
        """Return the reports of a body {"reports":[…]}, or None if any of them is not in this form."""
        return self._read(body, BATCH_HEAD, BATCH_TAIL)

    def write(self, packed: PackedReport) -> bytes:
        """Return the canonical JSON of a stored report, without spaces."""
        row = packed.payloads
        members: Iterable[tuple[bytes, slice]] = self._members.values()
        if isinstance(self._layout, OneQuestionLayout):
            members = [self._members[self._layout.asked(row)]]
        payloads = b",".join([name + b2a_base64(row[place], newline=False) + b'"' for name, place in members])
        public = self._written_values(row[: self._public.size]) if self._study.public else b""
        return b"".join([self._head, hexlify(packed.id), PAYLOADS_HEAD, payloads, b"}", public, self._tail])

    def _expression(self, sizes: Mapping[str, int]) -> bytes:
        """Return the expression of one report: groups for the id, each payload, and the public values."""
        payloads = [
            re.escape(member)
            + b"([A-Za-z0-9+/]{%d}%b)" % (sizes[name] // 3 * 4, BASE64_ENDS[sizes[name] % 3])
            + b'"'
            for name, (member, _) in self._members.items()
        ]
        one = b"(?:" + b"|".join(payloads) + b")" if self._study.sample_one_question else b",".join(payloads)
        public = b"(?:" + PUBLIC_HEAD + b"(" + STRINGS + b"))?" if self._study.public else b""
        head = re.escape(self._head) + b"([0-9a-f]{%d})" % (2 * ID_BYTES) + re.escape(PAYLOADS_HEAD)
        return head + one + rb"\}" + public + re.escape(self._tail) + b" *"

    def _read(self, body: bytes, first: bytes, last: bytes) -> list[PackedReport] | None:
        """Work column by column: a call for each report would cost more than the work."""
        # Text before the first report, then for each report its groups and the text behind it.
        parts = self._pattern.split(body)
        step = self._pattern.groups + 1
        if (
            parts[0] != first
            or parts[-1] != last
            or parts[step:-1:step].count(b",") != len(parts) // step - 1
        ):
            return None
        ids = map(unhexlify, parts[1::step])
        try:
            rows = self._pack_payloads([parts[2 + place :: step] for place in range(len(self._checks))])
            if self._study.public:
                public = [self._packed_values(text or b"{}") for text in parts[step - 1 :: step]]
                rows = map(bytes.__add__, public, rows)
            return list(map(MAKE_REPORT, zip(ids, repeat(self._study.version), rows)))
        except ReportError:
            return None

    def _pack_payloads(self, columns: list[list[bytes]]) -> Iterable[bytes]:
        """Return each report's packed payloads from their texts. Raises ReportError for an impossible one."""
        if self._study.sample_one_question:
            return [self._pack_answer(row) for row in zip(*columns)]
        payloads = []
        for texts, check in zip(columns, self._checks):
            payloads.append(list(map(a2b_base64, texts)))
            for payload in payloads[-1]:
                check(payload)
        if len(payloads) == 1:
            return payloads[0]
        return map(b"".join, zip(*[payloads[place] for place in self._in_order]))

    def _pack_answer(self, texts: Sequence[bytes | None]) -> bytes:
        """Return the payloads of a report that answers one question; the other texts are None."""
        for name, text, check in zip(self._members, texts, self._checks):
            if text is not None:
                payload = a2b_base64(text)
                check(payload)
                return self._layout.pack({name: payload})
        raise AssertionError("the expression has one payload")

    def _pack_values(self, text: bytes) -> bytes:
        """Return a canonical text's public values in bytes. Raises ReportError for values of others."""
        values = parse_json(text, ReportError, self._longest)
        plain = isinstance(values, dict) and all(isinstance(value, str) for value in values.values())
        if not plain or canonical_json(values) != text.decode():
            raise ReportError("public", "is spelled otherwise", code="report.public_not_canonical")
        wrong = self._study.wrong_public(values, invited=True)
        if wrong:
            raise ReportError(f"public.{wrong[0]}", wrong[1], code="report.public_value_invalid")
        return self._public.pack(values)

    def _write_values(self, packed: bytes) -> bytes:
        values = self._public.unpack(packed)
        return PUBLIC_HEAD + canonical_json(values).encode() if values else b""
