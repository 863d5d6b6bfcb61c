"""Reading and writing reports in canonical JSON at fixed places, without a JSON parser.

Every payload of a version has one size, so all its canonical reports have the same bytes but for
the id and the payloads. A body that fits is exactly such a report; any other is left to the parser,
which alone decides what is wrong with it.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64, hexlify, unhexlify
from collections.abc import Callable, Mapping
from itertools import pairwise
from struct import Struct
from typing import Protocol

from collector.storage.packing import Layout, PackedReport
from ldp_client.documents.errors import ReportError
from ldp_client.documents.report import ID_BYTES
from schemas import Report, Study

BATCH_HEAD = b'{"reports":['
BATCH_TAIL = b"]}"
DIGEST_HEAD = b'{"digest":"'
DIGEST_END = len(DIGEST_HEAD) + 64

Check = Callable[[bytes], None]


def digest_of(body: bytes) -> bytes:
    """Where a report or batch in canonical form has its (first) digest; else any bytes."""
    start = len(BATCH_HEAD) if body.startswith(BATCH_HEAD) else 0
    return body[start + len(DIGEST_HEAD) : start + DIGEST_END]


class Form(Protocol):
    """Reading and writing the reports of one version."""

    @property
    def size(self) -> int:
        """Bytes of the longest report."""

    def read(self, body: bytes) -> PackedReport | None:
        """The report that a body is, or None if it is not one in this form that a device could send."""

    def read_batch(self, body: bytes) -> list[PackedReport] | None:
        """The reports of a body {"reports":[…]}, or None if any of them is not in this form."""

    def write(self, packed: PackedReport) -> bytes:
        """The canonical JSON of a stored report."""


class CanonicalForm:
    """The canonical JSON of one version's reports. checks: {question id: the mechanism's check}."""

    def __init__(self, study: Study, layout: Layout, checks: Mapping[str, Check]) -> None:
        self._version = study.version
        # Payloads stand in JSON in the order of their names, and in a row in the study's.
        names = sorted(layout.places)
        self._checks = [checks[name] for name in names]
        self._order = [names.index(question_id) for question_id in layout.places]
        self._places = [layout.places[name] for name in names]
        payloads = {question_id: bytes(size) for question_id, size in layout.sizes}
        blank = Report("0" * 2 * ID_BYTES, study.id, study.version, study.digest, payloads)
        pieces = _cut(blank.to_json(), names)
        self._literals = pieces[::2]
        self._one = Struct("".join(f"{len(piece)}s" for piece in pieces))
        self._member_literals = (*self._literals[:-1], self._literals[-1] + b",")
        self._member = Struct(
            "".join(f"{len(piece)}s" for piece in (*pieces[:-1], self._member_literals[-1]))
        )

    @property
    def size(self) -> int:
        """Bytes of every report."""
        return self._one.size

    def read(self, body: bytes) -> PackedReport | None:
        """The report that a body is, or None if it is not one in this form that a device could send."""
        if len(body) != self._one.size:
            return None
        found = self._pack([self._one.unpack(body)], self._literals)
        return found[0] if found else None

    def read_batch(self, body: bytes) -> list[PackedReport] | None:
        """The reports of a body {"reports":[…]}, or None if any of them is not in this form."""
        members = body[len(BATCH_HEAD) : -len(BATCH_TAIL)] + b","
        is_batch = body.startswith(BATCH_HEAD) and body.endswith(BATCH_TAIL)
        if not is_batch or len(members) % self._member.size:
            return None
        return self._pack(list(self._member.iter_unpack(members)), self._member_literals)

    def write(self, packed: PackedReport) -> bytes:
        """The canonical JSON of a stored report."""
        fields = [hexlify(packed.id)]
        fields += [b2a_base64(packed.payloads[place], newline=False) for place in self._places]
        parts = [piece for pair in zip(self._literals, fields) for piece in pair]
        return b"".join(parts) + self._literals[-1]

    def _pack(
        self, members: list[tuple[bytes, ...]], literals: tuple[bytes, ...]
    ) -> list[PackedReport] | None:
        """Column by column: a call for each report would cost more than the work."""
        if any(member[::2] != literals for member in members):
            return None
        try:
            ids = [unhexlify(member[1]) for member in members]
            columns = [
                self._decode([member[place] for member in members], check)
                for place, check in zip(range(3, 2 * len(literals), 2), self._checks)
            ]
        except (ReportError, Base64Error):
            return None
        if hexlify(b"".join(ids)) != b"".join([member[1] for member in members]):
            return None
        rows = zip(*[columns[place] for place in self._order])
        return [PackedReport(report_id, self._version, b"".join(row)) for report_id, row in zip(ids, rows)]

    def _decode(self, texts: list[bytes], check: Check) -> list[bytes]:
        """The payloads of one question. Raises Base64Error, or ReportError for an impossible one."""
        payloads = [a2b_base64(text) for text in texts]
        if b"".join([b2a_base64(payload, newline=False) for payload in payloads]) != b"".join(texts):
            raise Base64Error("another spelling of a payload")
        for payload in payloads:
            check(payload)
        return payloads


class OneQuestionForm:
    """The canonical JSON of reports that answer one question, perhaps with spaces behind.

    Devices make up the size of the longest report with spaces, so that a report's size says nothing.
    """

    def __init__(self, study: Study, layout: Layout, checks: Mapping[str, Check]) -> None:
        self._layout = layout
        self._forms = {
            name: CanonicalForm(study, Layout([(name, size)]), checks) for name, size in layout.sizes
        }

    @property
    def size(self) -> int:
        """Bytes of the longest report."""
        return max(form.size for form in self._forms.values())

    def read(self, body: bytes) -> PackedReport | None:
        """The report that a body is, or None if it is not one in this form that a device could send."""
        body = body.rstrip(b" ")
        for name, form in self._forms.items():
            found = form.read(body)
            if found:
                return found._replace(payloads=self._layout.pack({name: found.payloads}))
        return None

    def read_batch(self, body: bytes) -> None:
        """Always None: the reports of a batch differ in size, so that they have no fixed places."""
        del body

    def write(self, packed: PackedReport) -> bytes:
        """The canonical JSON of a stored report, without spaces."""
        for name, form in self._forms.items():
            payload = self._layout.find(packed.payloads, name)
            if payload is not None:
                return form.write(packed._replace(payloads=payload))
        raise ValueError("a stored report answers no question of its study")


def form_of(study: Study, layout: Layout, checks: Mapping[str, Check]) -> Form:
    """The canonical form of a study's reports."""
    return (OneQuestionForm if study.ask_one else CanonicalForm)(study, layout, checks)


def _cut(blank: str, names: list[str]) -> tuple[bytes, ...]:
    """A report's text in pieces: what never changes, the id, what never changes, a payload, … the end."""
    ends = [0]
    for name in ("id", *names):
        head = f'"{name}":"'
        start = blank.index(head, ends[-1]) + len(head)
        ends += [start, blank.index('"', start)]
    ends.append(len(blank))
    return tuple(blank[start:end].encode() for start, end in pairwise(ends))
