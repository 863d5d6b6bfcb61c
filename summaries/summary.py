"""Fixed-size, mergeable summaries of reports: all that a posterior needs, whatever the number of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client import Mechanism, mechanisms_of
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import SummaryError
from ldp_client.documents.fields import Constant, Hex, Identifier, Integer, Text
from ldp_client.documents.public import MOST_FIELDS
from ldp_client.documents.shapes import ListOf, Record
from schemas import Study
from summaries.cells import MOST_CELLS, Cell, keeps_cells
from summaries.noise_tails import possible_tails, tails
from summaries.reductions import REDUCTIONS

FORMAT = "ldpkit.summary/1"
# The member that follows `format`; a file whose beginning has it is known as a summary.
CELLS = "public_cells"
MAX_BYTES = 1 << 28
LARGEST_COUNT = 1 << 53
NEEDS_REPORTS = "no summary of fixed size is exact for it: fit the reports themselves"


@dataclass(frozen=True)
class QuestionSummary:
    """The reports of one question, reduced to integers (see summaries.reductions).

    Attributes:
        n: how many reports.
        values: integers, as many as the reduction has; empty if the reports are kept.
        reports: their payloads, shape (n, bytes), if a posterior needs them; then there are no values.
        tails: counts of outliers (summaries.noise_tails); None without such noise, or if they were not
            counted.
    """

    n: int
    values: NDArray[np.int64]
    reports: NDArray[np.uint8] | None = None
    tails: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, mechanism: Mechanism, payloads: NDArray[np.uint8]) -> QuestionSummary:
        """Reduce payloads to their summary.

        Args:
            mechanism: the question's.
            payloads: n possible ones, shape (n, bytes), uint8.

        Returns:
            The summary of these n reports.
        """
        reduction = REDUCTIONS[mechanism.name]
        kept = payloads.copy() if reduction.keeps_reports(mechanism) else None
        return cls(len(payloads), reduction.reduce(mechanism, payloads), kept, tails(mechanism, payloads))

    def merge(self, other: QuestionSummary) -> QuestionSummary:
        """Add up two summaries of the same question.

        Args:
            other: the summary of reports that are not in this one.

        Returns:
            The summary of both sets of reports.
        """
        kept = [part.reports for part in (self, other) if part.reports is not None]
        reports = np.concatenate(kept) if kept else None
        far = None if self.tails is None or other.tails is None else self.tails + other.tails
        return QuestionSummary(self.n + other.n, self.values + other.values, reports, far)

    def to_document(self) -> dict[str, Any]:
        """Return this question's entry in a summary document."""
        counted = {} if self.tails is None else {"tails": [int(value) for value in self.tails]}
        return {"n": self.n, "values": [int(value) for value in self.values], **counted}


@dataclass(frozen=True)
class Summary:
    """The content of a set of reports for each question of one study.

    Attributes:
        study: id of the study whose document was answered.
        version: its version.
        digest: its digest, 64 hexadecimal digits.
        questions: {question id: QuestionSummary}, of all reports.
        cells: the same for each cell that has reports, {values of the public fields: {question id: …}}; None
            without public fields, and if there are too many cells (summaries.cells).
    """

    study: str
    version: int
    digest: str
    questions: Mapping[str, QuestionSummary]
    cells: Mapping[Cell, Mapping[str, QuestionSummary]] | None = None

    @classmethod
    def empty(cls, study: Study) -> Summary:
        """Build the summary of no reports.

        Args:
            study: the study.

        Returns:
            A summary with n = 0 for each question; merging it changes nothing.
        """
        questions = {}
        for name, mechanism in mechanisms_of(study).items():
            none = np.zeros((0, mechanism.payload_size), dtype=np.uint8)
            questions[name] = QuestionSummary.of(mechanism, none)
        return cls(study.id, study.version, study.digest, questions, {} if keeps_cells(study) else None)

    def merge(self, other: Summary) -> Summary:
        """Add up two summaries; associative and commutative.

        A summary has no ids: reports in both count twice, and this cannot be detected. Merge summaries of
        sets that share no report; `summarize` counts repeated reports once.

        Args:
            other: a summary of the same study document.

        Returns:
            The summary of both sets of reports.

        Raises:
            SummaryError: the other is of another study document.
        """
        if self.digest != other.digest:
            raise SummaryError(
                "digest",
                "summaries of different study documents cannot be merged",
                code="summary.merge_of_other_study",
            )
        merged = merged_parts(self.questions, other.questions)
        return Summary(self.study, self.version, self.digest, merged, _merged_cells(self.cells, other.cells))

    def to_json(self) -> str:
        """Return the canonical JSON text.

        Raises:
            SummaryError: a question's reports are needed whole, which no summary document has.
        """
        for name, part in self.questions.items():
            if part.reports is not None:
                raise SummaryError(f"questions.{name}", NEEDS_REPORTS, code="summary.not_serializable")
        head = {"format": FORMAT, "study": self.study, "version": self.version, "digest": self.digest}
        cells = {}
        if self.cells is not None:
            parts = sorted(self.cells.items())
            cells[CELLS] = [{"public": list(cell), "questions": _documents(some)} for cell, some in parts]
        return canonical_json({**head, "questions": _documents(self.questions), **cells})

    @classmethod
    def from_json(cls, text: str | bytes, study: Study) -> Summary:
        """Parse a summary of a study, and refuse values that its reports cannot have given.

        Args:
            text: JSON, at most 256 MiB, as text or UTF-8 bytes.
            study: the document that the summary is of.

        Returns:
            The summary.

        Raises:
            SummaryError: the text is no summary, is of another study document, has other questions, or values
                that so many reports cannot have.
        """
        parsed = _SHAPE.read(parse_json(text, SummaryError, MAX_BYTES), "", SummaryError)
        if parsed["digest"] != study.digest:
            raise SummaryError(
                "digest",
                f"it is of another study document, {parsed['study']} version {parsed['version']} with digest "
                f"{parsed['digest']}: use that document",
                code="summary.of_other_study",
            )
        empty = cls.empty(study)
        if set(parsed["questions"]) != set(empty.questions):
            raise SummaryError("questions", "are not the study's questions", code="summary.wrong_questions")
        _check_parts(study, empty, parsed["questions"], "")
        cells = parsed[CELLS]
        if cells is not None:
            cells = _checked_cells(study, empty, parsed["questions"], cells)
        return cls(study.id, study.version, study.digest, parsed["questions"], cells)


Parts = Mapping[str, QuestionSummary]


def merged_parts(one: Parts, other: Parts) -> Parts:
    """Add up two summaries of the same questions."""
    return {name: part.merge(other[name]) for name, part in one.items()}


def _documents(parts: Parts) -> dict[str, Any]:
    return {name: part.to_document() for name, part in parts.items()}


def _merged_cells(
    one: Mapping[Cell, Parts] | None, other: Mapping[Cell, Parts] | None
) -> dict[Cell, Parts] | None:
    """Merge cells; None if either was not kept by cell: the cells of some reports are then unknown."""
    if one is None or other is None:
        return None
    merged = {**one}
    for cell, parts in other.items():
        merged[cell] = merged_parts(one[cell], parts) if cell in one else parts
    return merged


def _checked_cells(
    study: Study, empty: Summary, whole: Parts, listed: Sequence[Mapping[str, Any]]
) -> dict[Cell, Parts]:
    """Return a document's cells. Raises SummaryError if they are not the study's or do not sum to `whole`."""
    if not keeps_cells(study):
        raise SummaryError(CELLS, "this study's summaries are not kept by cell", code="summary.not_by_cell")
    cells: dict[Cell, Parts] = {}
    total: Parts = empty.questions
    for index, entry in enumerate(listed):
        path, values = f"{CELLS}[{index}]", entry["public"]
        public = {field.id: value for field, value in zip(study.public, values)}
        if len(values) != len(study.public) or study.wrong_public(public) or values in cells:
            raise SummaryError(
                f"{path}.public",
                "must be one value of each public field, and stand once",
                code="summary.cell_wrong_public",
            )
        if set(entry["questions"]) != set(whole):
            raise SummaryError(
                f"{path}.questions", "are not the study's questions", code="summary.cell_wrong_questions"
            )
        _check_parts(study, empty, entry["questions"], f"{path}.")
        cells[values] = entry["questions"]
        total = merged_parts(total, cells[values])
    for name, part in whole.items():
        found = total[name]
        same = part.n == found.n and np.array_equal(part.values, found.values)
        if part.tails is not None and found.tails is not None:
            same = same and np.array_equal(part.tails, found.tails)
        if not same:
            raise SummaryError(
                CELLS, f"do not add up to the values in questions.{name}", code="summary.cells_do_not_add_up"
            )
    return cells


def _check_parts(study: Study, empty: Summary, parts: Parts, path: str) -> None:
    """Raise SummaryError for a part that its reports cannot have. path: of the parts, with a dot."""
    for name, mechanism in mechanisms_of(study).items():
        part, size, where = parts[name], len(empty.questions[name].values), f"{path}questions.{name}"
        if REDUCTIONS[mechanism.name].keeps_reports(mechanism):
            raise SummaryError(where, NEEDS_REPORTS, code="summary.part_needs_reports")
        if len(part.values) != size:
            problem = f"must have {size} entries"
            raise SummaryError(f"{where}.values", problem, code="summary.wrong_value_count")
        problem = f"cannot come from {part.n} reports"
        if not REDUCTIONS[mechanism.name].possible(mechanism, part.n, part.values):
            raise SummaryError(f"{where}.values", problem, code="summary.values_impossible")
        if part.tails is not None and not possible_tails(mechanism, part.n, part.tails):
            raise SummaryError(f"{where}.tails", problem, code="summary.tails_impossible")


class _Values:
    """A list of integers that fit in 63 bits."""

    def read(self, value: Any, path: str, error: type[SummaryError]) -> NDArray[np.int64]:
        good = isinstance(value, list) and all(type(v) is int and abs(v) < 1 << 62 for v in value)
        if not good:
            raise error(path, "must be a list of integers")
        return np.asarray(value, dtype=np.int64)


class _Questions:
    """{question id: {n, values}}."""

    def read(self, value: Any, path: str, error: type[SummaryError]) -> dict[str, QuestionSummary]:
        if not isinstance(value, dict):
            raise error(path, "must be an object")
        return {
            name: QuestionSummary(**_PART.read(part, f"{path}.{name}", error)) for name, part in value.items()
        }


_CELL = Record({"public": ListOf(Text(200), 1, MOST_FIELDS, repeats=True), "questions": _Questions()})
_PART = Record({"n": Integer(0, LARGEST_COUNT), "values": _Values()}, {"tails": _Values()})
_SHAPE = Record(
    {
        "format": Constant(FORMAT),
        "study": Identifier(),
        "version": Integer(1, 10**6),
        "digest": Hex(64),
        "questions": _Questions(),
    },
    {CELLS: ListOf(_CELL, 0, MOST_CELLS, repeats=True)},
)
