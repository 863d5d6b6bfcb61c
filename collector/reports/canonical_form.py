"""Reading and writing reports in canonical JSON at fixed places, without a JSON parser.

Every payload of a version has one size, so its canonical reports differ only in the id and the payloads.
A body that fits is exactly such a report. The parser handles every other body, and it alone decides what is
wrong with it.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64, hexlify, unhexlify
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from struct import Struct
from typing import Protocol

from collector.reports.packing import Layout, PublicPlaces
from collector.store import PackedReport
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import ReportError
from ldp_client.documents.report import ID_BYTES
from schemas import Report, Study

BATCH_HEAD = b'{"reports":['
BATCH_TAIL = b"]}"
DIGEST_HEAD = b'{"digest":"'
DIGEST_END = len(DIGEST_HEAD) + 64
PUBLIC_HEAD = b',"public":'
# Limits of each version's cache of public value texts: entries, and their bytes in all.
MOST_REMEMBERED = 8192
MOST_REMEMBERED_BYTES = 4 << 20

Check = Callable[[bytes], None]


def digest_of(body: bytes) -> bytes:
    """Return the (first) digest of a canonical report or batch. Other bodies give arbitrary bytes."""
    start = len(BATCH_HEAD) if body.startswith(BATCH_HEAD) else 0
    return body[start + len(DIGEST_HEAD) : start + DIGEST_END]


class Form(Protocol):
    """Reading and writing the reports of one version."""

    @property
    def size(self) -> int:
        """Return the size of the longest report in bytes."""

    def read(self, body: bytes) -> PackedReport | None:
        """Return the body's report, or None if no device could send this body in this form."""

    def read_batch(self, body: bytes) -> list[PackedReport] | None:
        """Return the reports of a body {"reports":[…]}, or None if any of them is not in this form."""

    def write(self, packed: PackedReport) -> bytes:
        """Return the canonical JSON of a stored report."""


class CanonicalForm:
    """The canonical JSON of one version's reports. checks: {question id: the mechanism's check}."""

    def __init__(self, study: Study, layout: Layout, checks: Mapping[str, Check]) -> None:
        self._version = study.version
        # JSON orders payloads by name, and a row by the study's order.
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
        """Return the size of every report in bytes."""
        return self._one.size

    def read(self, body: bytes) -> PackedReport | None:
        """Return the body's report, or None if no device could send this body in this form."""
        if len(body) != self._one.size:
            return None
        found = self._pack([self._one.unpack(body)], self._literals)
        return found[0] if found else None

    def read_batch(self, body: bytes) -> list[PackedReport] | None:
        """Return the reports of a body {"reports":[…]}, or None if any of them is not in this form."""
        members = body[len(BATCH_HEAD) : -len(BATCH_TAIL)] + b","
        is_batch = body.startswith(BATCH_HEAD) and body.endswith(BATCH_TAIL)
        if not is_batch or len(members) % self._member.size:
            return None
        return self._pack(list(self._member.iter_unpack(members)), self._member_literals)

    def write(self, packed: PackedReport) -> bytes:
        """Return the canonical JSON of a stored report."""
        fields = [hexlify(packed.id)]
        fields += [b2a_base64(packed.payloads[place], newline=False) for place in self._places]
        parts = [piece for pair in zip(self._literals, fields) for piece in pair]
        return b"".join(parts) + self._literals[-1]

    def _pack(
        self, members: list[tuple[bytes, ...]], literals: tuple[bytes, ...]
    ) -> list[PackedReport] | None:
        """Work column by column: a call for each report would cost more than the work."""
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
        """Return one question's payloads. Raises Base64Error, or ReportError for an impossible payload."""
        payloads = [a2b_base64(text) for text in texts]
        if b"".join([b2a_base64(payload, newline=False) for payload in payloads]) != b"".join(texts):
            raise Base64Error("another spelling of a payload")
        for payload in payloads:
            check(payload)
        return payloads


class OneQuestionForm:
    """The canonical JSON of reports that answer one question, possibly followed by spaces.

    Devices pad a report with spaces to the longest size, so that its size reveals nothing.
    """

    def __init__(self, study: Study, layout: Layout, checks: Mapping[str, Check]) -> None:
        self._layout = layout
        self._forms = {
            name: CanonicalForm(study, Layout([(name, size)]), checks) for name, size in layout.sizes
        }

    @property
    def size(self) -> int:
        """Return the size of the longest report in bytes."""
        return max(form.size for form in self._forms.values())

    def read(self, body: bytes) -> PackedReport | None:
        """Return the body's report, or None if no device could send this body in this form."""
        body = body.rstrip(b" ")
        for name, form in self._forms.items():
            found = form.read(body)
            if found:
                return found._replace(payloads=self._layout.pack({name: found.payloads}))
        return None

    def read_batch(self, body: bytes) -> None:
        """Return None always: the reports of a batch differ in size, so that they have no fixed places."""
        del body

    def write(self, packed: PackedReport) -> bytes:
        """Return the canonical JSON of a stored report, without spaces."""
        for name, form in self._forms.items():
            payload = self._layout.find(packed.payloads, name)
            if payload is not None:
                return form.write(packed._replace(payloads=payload))
        raise ValueError("a stored report answers no question of its study")


class PublicForm:
    """The canonical JSON of reports that also carry public values, possibly followed by spaces.

    bare: the form of a report without its public values.
    """

    def __init__(self, study: Study, bare: Form) -> None:
        self._study = study
        self._bare = bare
        self._public = PublicPlaces(study.public)
        self._tail = f',"study":"{study.id}","version":{study.version}}}'.encode()
        # No string of JSON has a bare quote, so this matches only between two reports.
        self._between = re.compile(re.escape(self._tail) + b' *,(?={"digest":")')
        self._longest = len("{}") + sum(len(field.id) + len('"":,') + field.longest for field in study.public)
        # The same few hundred combinations repeat. Strangers choose the texts, so the cache keeps only the
        # study's own values: other texts raise an error, and lru_cache keeps no errors.
        most = min(MOST_REMEMBERED, max(1, MOST_REMEMBERED_BYTES // self._longest))
        self._packed = lru_cache(maxsize=most)(self._pack_values)
        self._written = lru_cache(maxsize=most)(self._write_values)

    @property
    def size(self) -> int:
        """Return the size of the longest report in bytes."""
        return self._bare.size + len(PUBLIC_HEAD) + self._longest

    def read(self, body: bytes) -> PackedReport | None:
        """Return the body's report, or None if no device could send this body in this form."""
        body = body.rstrip(b" ")
        head, mark, rest = body.partition(b"}" + PUBLIC_HEAD)
        if mark and (not rest.endswith(self._tail) or rest.startswith(b"{}")):
            return None
        text = rest[: -len(self._tail)] if mark else b"{}"
        if len(text) > self._longest:
            return None
        report = self._bare.read(head + b"}" + self._tail if mark else body)
        try:
            return None if report is None else report._replace(payloads=self._packed(text) + report.payloads)
        except ReportError:
            return None

    def read_batch(self, body: bytes) -> list[PackedReport] | None:
        """Return the reports of a body {"reports":[…]}, or None if any of them is not in this form."""
        if not (body.startswith(BATCH_HEAD) and body.endswith(BATCH_TAIL)):
            return None
        *members, last = self._between.split(body[len(BATCH_HEAD) : -len(BATCH_TAIL)])
        found = []
        for member in [*(one + self._tail for one in members), last]:
            report = self.read(member)
            if report is None:
                return None
            found.append(report)
        return found

    def write(self, packed: PackedReport) -> bytes:
        """Return the canonical JSON of a stored report, without spaces."""
        text = self._bare.write(packed)
        values = self._written(packed.payloads[: self._public.size])
        return text[: -len(self._tail)] + values + self._tail

    def _pack_values(self, text: bytes) -> bytes:
        """Return this canonical text's values in bytes. Raises ReportError if they are not the study's."""
        values = parse_json(text, ReportError, self._longest)
        plain = isinstance(values, dict) and all(isinstance(value, str) for value in values.values())
        if not plain or canonical_json(values) != text.decode():
            raise ReportError("public", "is spelled otherwise", code="report.public_not_canonical")
        wrong = self._study.wrong_public(values, invited=True)
        if wrong:
            raise ReportError(f"public.{wrong[0]}", wrong[1], code="report.public_value_invalid")
        return self._public.pack(values)

    def _write_values(self, packed: bytes) -> bytes:
        return PUBLIC_HEAD + canonical_json(self._public.unpack(packed)).encode()


def form_of(study: Study, layout: Layout, checks: Mapping[str, Check]) -> Form:
    """Return the canonical form of a study's reports."""
    bare: Form = (OneQuestionForm if study.sample_one_question else CanonicalForm)(study, layout, checks)
    return PublicForm(study, bare) if study.public else bare


def _cut(blank: str, names: list[str]) -> tuple[bytes, ...]:
    """Cut a report's text into pieces: constant text, the id, constant text, a payload, … the end."""
    ends = [0]
    for name in ("id", *names):
        head = f'"{name}":"'
        start = blank.index(head, ends[-1]) + len(head)
        ends += [start, blank.index('"', start)]
    ends.append(len(blank))
    return tuple(blank[start:end].encode() for start, end in pairwise(ends))
