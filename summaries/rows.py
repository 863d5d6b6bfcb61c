"""Checked reports as rows of bytes, all of one length: they are sorted, sent to workers, and reduced.

A row is the report's place (8 bytes), its id (16), the places of its public values in their fields (4 each),
and its payloads end to end. If each device answers one question, the row ends with the question's number (2)
and the payload, padded with zeros. Two reports have the same content exactly if their rows are equal after
the id.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client import mechanisms_of
from ldp_client.documents.report import ID_BYTES
from schemas import Report, Study
from summaries.cells import Cell, keeps_cells
from summaries.summary import Parts, QuestionSummary, Summary, merged_parts

Rows = NDArray[np.uint8]
Places = NDArray[np.uint64]

PLACE_BYTES = 8
PUBLIC_BYTES = 4
NUMBER_BYTES = 2
CONTENT = PLACE_BYTES + ID_BYTES
# The low bits of a place number the rows of a file; the higher bits number the files.
ROW_BITS = 40
# Rows that are reduced at a time: their arrays stay in the processor's cache.
ROWS_AT_ONCE = 1 << 15
# Reduced by cell once there are so many bytes: each cell costs some calls, however few its rows are.
BUFFERED = 1 << 25


class RowLayout:
    """The layout of the rows of a study's reports.

    Args:
        study: the document that the reports answer.

    Attributes:
        width: bytes of a row.
        payloads_at: where payloads begin, or the number of the question that a report answers.
    """

    def __init__(self, study: Study) -> None:
        self._fields = study.public
        self._sample_one = study.sample_one_question
        self.payloads_at = CONTENT + PUBLIC_BYTES * len(study.public)
        sizes = {name: one.payload_size for name, one in mechanisms_of(study).items()}
        self.numbers = {name: number for number, name in enumerate(sizes)}
        if study.sample_one_question:
            begin = self.payloads_at + NUMBER_BYTES
            self.places = {name: slice(begin, begin + size) for name, size in sizes.items()}
            self.width = begin + max(sizes.values())
            return
        ends = (self.payloads_at + np.cumsum(list(sizes.values()))).tolist()
        self.places = {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends)}
        self.width = ends[-1]

    def empty(self, count: int) -> Rows:
        """Return rows of zeros."""
        return np.zeros((count, self.width), dtype=np.uint8)

    def joined(self, parts: list[Rows]) -> Rows:
        """Return all of these rows as one array."""
        return np.concatenate(parts) if parts else self.empty(0)

    def answered(self, rows: Rows, name: str) -> Rows:
        """Return the payloads of the rows that answer a question, (answered, bytes)."""
        if self._sample_one:
            rows = rows[column(rows, self.payloads_at, np.dtype("<u2")) == self.numbers[name]]
        return bytes_in(rows, self.places[name])

    def rows_of(self, reports: Iterable[tuple[int, Report]]) -> Rows:
        """Return the rows of checked reports, each with its place."""
        rows = []
        for place, report in reports:
            row = place.to_bytes(PLACE_BYTES, "little") + bytes.fromhex(report.id)
            for field in self._fields:
                row += (field.place(report.public[field.id]) or 0).to_bytes(PUBLIC_BYTES, "little")
            if self._sample_one:
                ((name, payload),) = report.payloads.items()
                row += self.numbers[name].to_bytes(NUMBER_BYTES, "little") + payload
            else:
                row += b"".join([report.payloads[name] for name in self.numbers])
            rows.append(row.ljust(self.width, b"\0"))
        return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, self.width)

    def set_question(self, rows: Rows, name: str, which: NDArray[np.int64]) -> None:
        """Write the number of the question that these rows answer."""
        number = np.frombuffer(self.numbers[name].to_bytes(NUMBER_BYTES, "little"), np.uint8)
        rows[which, self.payloads_at : self.payloads_at + NUMBER_BYTES] = number


def column(rows: Rows, begin: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return one integer of each row, copied."""
    return rows[:, begin : begin + kind.itemsize].view(kind)[:, 0].copy()


def bytes_in(rows: Rows, where: slice) -> Rows:
    """Return some bytes of each row, copied: all of a row at once, which is far quicker than byte by byte."""
    size = where.stop - where.start
    return rows[:, where].view(np.dtype((np.void, size))).copy().view(np.uint8).reshape(len(rows), size)


def put_bytes(rows: Rows, begin: int, content: NDArray[Any]) -> None:
    """Write (n, bytes), or n numbers, into all rows from this byte on, all of a row at once."""
    content = np.ascontiguousarray(content)
    columns = content.shape[1] if content.ndim == 2 else 1
    size = columns * content.itemsize
    kind = np.dtype((np.void, size))
    rows[:, begin : begin + size].view(kind)[:, 0] = content.reshape(len(rows), columns).view(kind)[:, 0]


def places_of(rows: Rows) -> Places:
    """Return where each row's report was read."""
    return column(rows, 0, np.dtype("<u8"))


def parts_of(rows: Rows, bits: int) -> Iterator[tuple[int, Rows]]:
    """Split rows by the first bits of their ids, at most 16: each part's number, and its rows."""
    if not bits:
        yield 0, rows
        return
    numbers = column(rows, PLACE_BYTES, np.dtype(">u2")).astype(np.uint16) >> (16 - bits)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=1 << bits))
    sorted_rows = rows[order]
    for number in np.unique(numbers).tolist():
        begin = int(ends[number - 1]) if number else 0
        yield number, sorted_rows[begin : int(ends[number])]


class Once(NamedTuple):
    """Rows without repetitions.

    Attributes:
        kept: the rows that count, each id's first.
        repeated: how many rows came again.
        clashes: where a row has the id of another with different content, and that id; in any order.
    """

    kept: Rows
    repeated: int
    clashes: list[tuple[int, str]]


def once(rows: Rows) -> Once:
    """Count each id once.

    Args:
        rows: all rows of some ids, in any order.

    Returns:
        For each id the row that was read first; later rows with the same content are repeated, others clash.
    """
    # 1. Rows whose ids begin with the same eight bytes as another's, sorted by id and place.
    high, low = (
        column(rows, begin, np.dtype(">u8")).astype(np.uint64) for begin in (PLACE_BYTES, CONTENT - 8)
    )
    ordered = np.sort(high)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(again):
        return Once(rows, 0, [])
    doubtful = np.flatnonzero(np.isin(high, again))
    some, places = rows[doubtful], places_of(rows[doubtful])
    order = np.lexsort((places, low[doubtful], high[doubtful]))
    doubtful, some = doubtful[order], some[order]
    # 2. The first row of each id counts; rows with other content clash.
    is_first = np.ones(len(some), dtype=np.bool_)
    is_first[1:] = (np.diff(high[doubtful]) != 0) | (np.diff(low[doubtful]) != 0)
    first_of = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    is_same = (some[:, CONTENT:] == some[first_of, CONTENT:]).all(axis=1)
    clashing = some[~is_same]
    kept = np.ones(len(rows), dtype=np.bool_)
    kept[doubtful[~is_first]] = False
    ids = [bytes(row[CONTENT - 16 : CONTENT]).hex() for row in clashing]
    clashes = list(zip(places_of(clashing).tolist(), ids))
    return Once(rows[kept], int((~is_first & is_same).sum()), clashes)


class Reducer:
    """Reduces rows to a summary in bounded memory.

    Args:
        study: the document that the reports answer.
        by_cell: whether the summary has a part for each cell; by default if the study has few.
    """

    def __init__(self, study: Study, by_cell: bool | None = None) -> None:
        self._study, self.layout = study, RowLayout(study)
        self._mechanisms = mechanisms_of(study)
        self._by_cell = keeps_cells(study) if by_cell is None else by_cell
        self._cells: dict[Cell, Parts] = {}
        self._waiting: list[Rows] = []
        self._bytes = 0

    def add(self, rows: Rows) -> None:
        """Add good reports that were not added before."""
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= BUFFERED:
            self._flush()

    def summary(self) -> Summary:
        """Return the summary of all that was added."""
        self._flush()
        study = self._study
        whole: Parts = Summary.empty(study).questions
        for parts in self._cells.values():
            whole = merged_parts(whole, parts)
        cells = self._cells if self._by_cell else None
        return Summary(study.id, study.version, study.digest, whole, cells)

    def _flush(self) -> None:
        rows = self.layout.joined(self._waiting)
        self._waiting, self._bytes = [], 0
        if not len(rows):
            return
        # The rows of each cell, or all as one cell.
        values: list[list[int]] = [[]]
        groups = [rows]
        if self._by_cell:
            places = bytes_in(rows, slice(CONTENT, self.layout.payloads_at))
            found, which = np.unique(places, axis=0, return_inverse=True)
            order = np.argsort(which.ravel(), kind="stable")
            ends = np.cumsum(np.bincount(which.ravel()))[:-1]
            values, groups = found.view("<u4").tolist(), np.split(rows[order], ends)
        for places_of_cell, some in zip(values, groups):
            cell = tuple(field.value(place) for field, place in zip(self._study.public, places_of_cell))
            parts = self._reduced(some)
            self._cells[cell] = merged_parts(self._cells[cell], parts) if cell in self._cells else parts

    def _reduced(self, rows: Rows) -> Parts:
        parts: Parts = {}
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[begin : begin + ROWS_AT_ONCE]
            one = {
                name: QuestionSummary.of(mechanism, self.layout.answered(some, name))
                for name, mechanism in self._mechanisms.items()
            }
            parts = merged_parts(parts, one) if parts else one
        return parts
