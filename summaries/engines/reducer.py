"""From rows of good reports, each once, to a summary, or to counts of equal reports."""

from __future__ import annotations

import numpy as np

from ldp_client import mechanisms_of
from schemas import Study
from summaries.cells import Cell, cell_at, keeps_cells
from summaries.engines.parts import Part
from summaries.engines.rows import RowLayout, Rows
from summaries.summary import Parts, QuestionSummary, Summary

# Rows at a time: their arrays stay in the processor's cache.
ROWS_AT_ONCE = 1 << 15
# Reduced by cell once there are so many bytes: each cell costs some calls, however few its rows are.
BUFFERED = 1 << 25


class Reducer:
    """Reduces rows to a summary in bounded memory, by cell where the study's summaries are.

    Args:
        study: the document that the reports answer.
    """

    def __init__(self, study: Study) -> None:
        self._study, self._layout = study, RowLayout(study)
        self._mechanisms = mechanisms_of(study)
        self._by_cell = keeps_cells(study)
        self._cells: dict[Cell, Parts] = {}
        self._whole: Parts = Summary.empty(study).questions
        self._waiting: list[Rows] = []
        self._bytes = 0

    def add(self, rows: Rows) -> None:
        """Add good reports that were not added before."""
        if not self._by_cell and len(rows):
            self._whole = _added(self._whole, self._reduced(rows))
            return
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= BUFFERED:
            self._flush()

    def summary(self) -> Summary:
        """Return the summary of all that was added."""
        self._flush()
        study = self._study
        whole = self._whole
        for parts in self._cells.values():
            whole = _added(whole, parts)
        cells = self._cells if self._by_cell else None
        return Summary(study.id, study.version, study.digest, whole, cells)

    def put_into(self, found: Part) -> None:
        """Put the summary into a worker's findings."""
        found.summary = self.summary()

    def _flush(self) -> None:
        rows = self._layout.joined(self._waiting)
        self._waiting, self._bytes = [], 0
        if not len(rows):
            return
        numbers = self._layout.cells(rows)
        order = np.argsort(numbers, kind="stable")
        found, begins = np.unique(numbers[order], return_index=True)
        rows = rows[order]
        for number, begin, end in zip(found.tolist(), begins.tolist(), [*begins[1:].tolist(), len(rows)]):
            cell, parts = cell_at(self._study, number), self._reduced(rows[begin:end])
            self._cells[cell] = _added(self._cells[cell], parts) if cell in self._cells else parts

    def _reduced(self, rows: Rows) -> Parts:
        parts: Parts = {}
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[begin : begin + ROWS_AT_ONCE]
            one = {
                name: QuestionSummary.of(mechanism, self._layout.answered(some, name))
                for name, mechanism in self._mechanisms.items()
            }
            parts = _added(parts, one) if parts else one
        return parts


def _added(parts: Parts, more: Parts) -> Parts:
    return {name: part.merge(more[name]) for name, part in parts.items()}
