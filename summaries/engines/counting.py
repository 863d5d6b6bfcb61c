"""Counts of equal reports: the input of tables of several private answers and public fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError
from schemas import Report, Study
from summaries.engines.parts import Part, refuse_many
from summaries.engines.rows import CONTENT, PUBLIC_BYTES, RowLayout, Rows
from summaries.reducing import CheckedReports

# Public values, then payloads; None where a report answers another question.
Key = tuple[tuple[str, ...], tuple[bytes | None, ...]]


class ReportCounts(CheckedReports):
    """How often each combination of some payloads and public values came, each report once.

    `analyse` takes it instead of the reports, for formulas and tables of these questions and fields.

    Args:
        study: the document that was answered.
        asked: ids of the questions and public fields.
        seen: {(public values, payloads), both in the study's order: how many}.
        notes: notes for readers of a result.
    """

    def __init__(
        self, study: Study, asked: tuple[str, ...], seen: Mapping[Key, int], notes: tuple[str, ...] = ()
    ) -> None:
        self.digest = study.digest
        self.seen = Counter(seen)
        self._notes = notes
        self._fields = [field.id for field in study.public if field.id in asked]
        self._questions = [question.id for question in study.questions if question.id in asked]

    def by(self, fields: list[str], questions: list[str]) -> Counter[Key]:
        """Count by fewer of them.

        Args:
            fields: ids of public fields.
            questions: ids of questions.

        Returns:
            {(public values, payloads): how many}.

        Raises:
            InputError: the reports were not counted by one of the ids.
        """
        missing = [n for n in [*fields, *questions] if n not in (*self._fields, *self._questions)]
        if missing:
            raise InputError(
                f"reports were not counted by {missing[0]}: count them by it too",
                code="engine.not_counted_by",
            )
        public = [self._fields.index(name) for name in fields]
        private = [self._questions.index(name) for name in questions]
        found: Counter[Key] = Counter()
        for (values, payloads), many in self.seen.items():
            found[tuple(values[at] for at in public), tuple(payloads[at] for at in private)] += many
        return found

    def notes(self) -> tuple[str, ...]:
        """Notes for readers of a result."""
        return self._notes

    def __iter__(self) -> Iterator[Report]:
        raise InputError(
            "these are counts of reports, not the reports: take the reports themselves",
            code="engine.counts_not_reports",
        )


class Counting:
    """Counts rows by their answers to some questions and their values of some public fields.

    Args:
        study: the document that the reports answer.
        asked: ids of the questions and public fields.
    """

    def __init__(self, study: Study, asked: tuple[str, ...]) -> None:
        self._study, self._layout = study, RowLayout(study)
        self._sizes = {n: one.payload_size for n, one in mechanisms_of(study).items() if n in asked}
        self._fields = {at: field for at, field in enumerate(study.public) if field.id in asked}
        self._counts: dict[bytes, int] = {}

    def add(self, rows: Rows) -> None:
        """Add good reports that were not added before. Raises InputError if hardly any two are equal."""
        if not len(rows):
            return
        keys = np.ascontiguousarray(np.concatenate(self._columns(rows), axis=1))
        kind = np.dtype((np.void, keys.shape[1]))
        distinct, many = np.unique(keys.view(kind)[:, 0], return_counts=True)
        for key, count in zip(distinct.tolist(), many.tolist()):
            self._counts[key] = self._counts.get(key, 0) + count
        refuse_many(self._counts)

    def put_into(self, found: Part) -> None:
        """Put the counts into a worker's findings."""
        found.counts = self._counts

    def _columns(self, rows: Rows) -> list[Rows]:
        """Return the parts of a key. If devices answer one question, a first byte tells if it is this one."""
        begins = {at: CONTENT + PUBLIC_BYTES * at for at in self._fields}
        found = [rows[:, begin : begin + PUBLIC_BYTES] for begin in begins.values()]
        for name in self._sizes:
            payloads = rows[:, self._layout.places[name]]
            is_answer = np.ones(len(rows), np.bool_)
            if self._study.sample_one_question:
                is_answer = self._layout.question_numbers(rows) == self._layout.numbers[name]
            found += [is_answer[:, None].astype(np.uint8), payloads * is_answer[:, None]]
        return found or [np.zeros((len(rows), 1), np.uint8)]

    def key(self, key: bytes) -> Key:
        """Decode one of the counted keys."""
        at = 0
        public, payloads = [], []
        for field in self._fields.values():
            public.append(field.value(int.from_bytes(key[at : at + PUBLIC_BYTES], "little")))
            at += PUBLIC_BYTES
        for size in self._sizes.values():
            payloads.append(key[at + 1 : at + 1 + size] if key[at] else None)
            at += 1 + size
        return tuple(public), tuple(payloads)
