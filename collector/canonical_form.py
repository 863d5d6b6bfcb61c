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

from collector.packing import Layout, PackedReport
from schemas import Report, Study
from schemas.errors import ReportError
from schemas.report import ID_BYTES

BATCH_HEAD = b'{"reports":['
BATCH_TAIL = b"]}"
DIGEST_HEAD = b'{"digest":"'
DIGEST_END = len(DIGEST_HEAD) + 64

Check = Callable[[bytes], None]


def digest_of(body: bytes) -> bytes:
    """Where a report or batch in canonical form has its (first) digest; else any bytes."""
    start = len(BATCH_HEAD) if body.startswith(BATCH_HEAD) else 0
    return body[start + len(DIGEST_HEAD) : start + DIGEST_END]


class CanonicalForm:
    """The canonical JSON of one version's reports. checks: {question id: the mechanism's check}."""

    def __init__(self, study: Study, layout: Layout, checks: Mapping[str, Check]) -> None:
        self._version = study.version
        # Payloads stand in JSON in the order of their names, and in a row in the study's.
        names = sorted(layout.places)
        self._checks = [checks[name] for name in names]
        self._order = [names.index(question_id) for question_id in layout.places]
        self._places = [layout.places[name] for name in names]
        payloads = layout.unpack(bytes(layout.size))
        blank = Report("0" * 2 * ID_BYTES, study.id, study.version, study.digest, payloads)
        pieces = _cut(blank.to_json(), names)
        self._literals = pieces[::2]
        self._one = Struct("".join(f"{len(piece)}s" for piece in pieces))
        self._member_literals = (*self._literals[:-1], self._literals[-1] + b",")
        self._member = Struct(
            "".join(f"{len(piece)}s" for piece in (*pieces[:-1], self._member_literals[-1]))
        )

    def read(self, body: bytes) -> PackedReport | None:
        """The report that a body is, or None if it is not one in this form that a device could send."""
        if len(body) != self._one.size:
            return None
        parts = self._one.unpack(body)
        if parts[::2] != self._literals:
            return None
        try:
            return self._pack(parts)
        except (ReportError, Base64Error):
            return None

    def read_batch(self, body: bytes) -> list[PackedReport] | None:
        """The reports of a body {"reports":[…]}, or None if any of them is not in this form."""
        members = body[len(BATCH_HEAD) : -len(BATCH_TAIL)] + b","
        is_batch = body.startswith(BATCH_HEAD) and body.endswith(BATCH_TAIL)
        if not is_batch or len(members) % self._member.size:
            return None
        parts = list(self._member.iter_unpack(members))
        if any(part[::2] != self._member_literals for part in parts):
            return None
        try:
            return [self._pack(part) for part in parts]
        except (ReportError, Base64Error):
            return None

    def write(self, packed: PackedReport) -> bytes:
        """The canonical JSON of a stored report."""
        fields = [hexlify(packed.id)]
        fields += [b2a_base64(packed.payloads[place], newline=False) for place in self._places]
        parts = [piece for pair in zip(self._literals, fields) for piece in pair]
        return b"".join(parts) + self._literals[-1]

    def _pack(self, parts: tuple[bytes, ...]) -> PackedReport:
        report_id = unhexlify(parts[1])
        if hexlify(report_id) != parts[1]:
            raise Base64Error("an id in upper case")
        payloads = []
        for text, check in zip(parts[3::2], self._checks):
            payload = a2b_base64(text)
            if b2a_base64(payload, newline=False) != text:
                raise Base64Error("another spelling of a payload")
            check(payload)
            payloads.append(payload)
        return PackedReport(report_id, self._version, b"".join([payloads[place] for place in self._order]))


def _cut(blank: str, names: list[str]) -> tuple[bytes, ...]:
    """A report's text in pieces: what never changes, the id, what never changes, a payload, … the end."""
    ends = [0]
    for name in ("id", *names):
        head = f'"{name}":"'
        start = blank.index(head, ends[-1]) + len(head)
        ends += [start, blank.index('"', start)]
    ends.append(len(blank))
    return tuple(blank[start:end].encode() for start, end in pairwise(ends))
