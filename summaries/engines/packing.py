"""Converts Arrow columns of reports to rows of bytes: all reports of a batch are checked at once.

A bulk check accepts exactly the payloads that the mechanism's `check` accepts; a test compares the two.
Reports that fail are read again one by one, as every other reader reads them, and refused in the same words.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ldp_client import mechanisms_of
from ldp_client.core.strips import NOISE_REACH
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.documents.report import ID_BYTES
from ldp_client.mechanisms.base import LARGEST_SIGNED, Mechanism
from ldp_client.mechanisms.olh import PRIME, SEED_BYTES
from schemas import Study
from summaries.findings import Findings
from summaries.reducing import check_report
from summaries.reductions.base import Payloads, big_endian, signed
from summaries.rows import CONTENT, PLACE_BYTES, PUBLIC_BYTES, ROW_BITS, RowLayout, Rows, put_bytes
from summaries.tables import refuse_repeated, report_of_row

Mask = NDArray[np.bool_]
COLUMNS = ("report_id", "study", "version", "digest", "public", "payloads")
NEEDED = tuple(name for name in COLUMNS if name != "public")
HEAD = ("study", "version", "digest")
DIGITS = np.full(256, 255, dtype=np.uint8)
DIGITS[[*b"0123456789abcdef"]] = np.arange(16)
# The highest bit of each of eight bytes: set if the byte is no hexadecimal digit.
NO_DIGITS = np.uint64(0x8080808080808080)
TEXTS = ("string", "large_string", "string_view")
BYTES = ("binary", "large_binary", "binary_view", "fixed_size_binary")


class Packer:
    """Checks batches of reports, and packs the good ones; problems of the others go to `found`.

    Args:
        study: the document that reports should answer.
        found: where findings go.
    """

    def __init__(self, study: Study, found: Findings) -> None:
        self.layout = RowLayout(study)
        self.found = found
        self._study = study
        self._mechanisms = mechanisms_of(study)
        self._places: list[dict[str | None, int]] = [{} for _ in study.public]

    def pack(self, batch: pa.RecordBatch, first: int, where: str) -> Rows:
        """Return the rows of the good reports of a batch, in its order.

        Args:
            batch: columns as an export writes them; others stay out.
            first: the place of its first row among all rows that are read.
            where: the source of its rows, such as a file's name; rows are numbered from `first`.
        """
        count = batch.num_rows
        self.found.read += count
        if not set(NEEDED) <= set(batch.schema.names):
            return self._read_apart(batch, np.arange(count), first, where)
        # 1. Rows that claim to answer the study's document.
        wanted = (self._study.id, self._study.version, self._study.digest)
        masks = []
        for name, value in zip(HEAD, wanted):
            codes, values = _coded(batch.column(name))
            # Python's True is 1, and no version.
            equal = [each == value and not isinstance(each, bool) for each in values]
            masks.append(np.array(equal, dtype=np.bool_)[codes])
        # 2. Their ids, public values and payloads.
        rows = self.layout.empty(count)
        put_bytes(rows, 0, np.arange(first, first + count, dtype="<u8"))
        digits, good = fixed_bytes(batch.column("report_id"), 2 * ID_BYTES, TEXTS)
        halves = DIGITS[digits]
        put_bytes(rows, PLACE_BYTES, halves[:, ::2] << 4 | halves[:, 1::2])
        good &= (halves.view(np.uint64) & NO_DIGITS == 0).all(axis=1)
        good &= np.logical_and.reduce(masks) & self._put_public(batch, rows)
        good &= self._put_payloads(batch, rows, good)
        # 3. The others are read one by one.
        if good.all():
            return rows
        apart = self._read_apart(batch, np.flatnonzero(~good), first, where)
        return self.layout.joined([rows[good], apart])

    def _put_public(self, batch: pa.RecordBatch, rows: Rows) -> Mask:
        good = np.ones(len(rows), dtype=np.bool_)
        given = _children(batch, "public")
        begin = CONTENT
        for field, known in zip(self._study.public, self._places):
            column = given.pop(field.id, None)
            if column is None:
                return np.zeros(len(rows), dtype=np.bool_)
            codes, values = _coded(column)
            for value in values:
                if value not in known:
                    place = None if value is None else field.place(value)
                    known[value] = -1 if place is None else place
            places = np.array([known[value] for value in values], dtype="<i4")[codes]
            good &= places >= 0
            put_bytes(rows, begin, places)
            begin += PUBLIC_BYTES
        return good & _all_null(given, len(rows))

    def _put_payloads(self, batch: pa.RecordBatch, rows: Rows, wanted: Mask) -> Mask:
        """Write the payloads that are possible; rows with others are not good. wanted: the rows to try."""
        given = _children(batch, "payloads")
        answered = np.zeros(len(rows), dtype=np.int64)
        good = np.ones(len(rows), dtype=np.bool_)
        for name, mechanism in self._mechanisms.items():
            column = given.pop(name, None)
            if column is None or column.null_count == len(column):
                continue
            payloads, fits = fixed_bytes(column, mechanism.payload_size, BYTES)
            there = _valid(column)
            fits &= wanted
            fits[fits] = possible(mechanism, payloads if fits.all() else payloads[fits])
            place = self.layout.places[name]
            if fits.all():
                put_bytes(rows, place.start, payloads)
            else:
                # If each device answers one question, all payloads begin at one place.
                rows[np.flatnonzero(fits), place] = payloads[fits]
            good &= fits | ~there
            answered += there
            if self._study.sample_one_question:
                self.layout.set_question(rows, name, np.flatnonzero(there))
        count = 1 if self._study.sample_one_question else len(self._mechanisms)
        return np.asarray(good & (answered == count) & _all_null(given, len(rows)))

    def _read_apart(self, batch: pa.RecordBatch, wanted: NDArray[Any], first: int, where: str) -> Rows:
        """Read these rows as reports, one by one, and return the good ones, if any."""
        found = []
        for row, document in zip(wanted.tolist(), batch.take(pa.array(wanted)).to_pylist(), strict=True):
            place, name = first + row, f"{where}, row {(first + row & (1 << ROW_BITS) - 1) + 1}"
            try:
                report = report_of_row(document)
                if self.found.is_other(report, name, place):
                    continue
                check_report(self._study, self._mechanisms, report)
            except ReportError as error:
                self.found.refuse(f"{name}: {error}", place)
                continue
            found.append((place, report))
        return self.layout.rows_of(found)


def refuse_columns(given: Iterable[str]) -> None:
    """Raise InputError if a frame lacks a column of an export, or has one twice. An index is no column."""
    given = list(given)
    refuse_repeated(given, "the frame")
    missing = [name for name in NEEDED if name not in given]
    if missing:
        raise InputError(
            f"the frame has no column {', '.join(missing)}: it needs {', '.join(NEEDED)}",
            code="engine.frame_column_missing",
        )


def fixed_bytes(column: pa.Array, size: int, kinds: Sequence[str]) -> tuple[Rows, Mask]:
    """Read a column of texts or bytes of one length.

    Args:
        column: of any type.
        size: how many bytes each should have.
        kinds: the types that are read, TEXTS or BYTES: one is not the other where single reports are read.

    Returns:
        The bytes, (n, size), zeros where a value is none or of another length; and which are not, (n,).
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(getattr(pa.types, f"is_{one}")(kind) for one in kinds):
        return np.zeros((len(column), size), np.uint8), np.zeros(len(column), np.bool_)
    column = column.cast(pa.binary())
    count = len(column)
    _, ends, data = column.buffers()
    if not count or data is None:
        return np.zeros((count, size), np.uint8), np.zeros(count, np.bool_)
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + count + 1].astype(np.int64)
    good = (np.diff(offsets) == size) & _valid(column)
    joined = np.frombuffer(data, np.uint8)
    if good.all():
        return joined[offsets[0] : offsets[-1]].reshape(count, size), good
    found = np.zeros((count, size), np.uint8)
    found[good] = joined[offsets[:-1][good][:, None] + np.arange(size)]
    return found, good


def _valid(column: pa.Array) -> Mask:
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def _children(batch: pa.RecordBatch, name: str) -> dict[str, pa.Array]:
    """The columns of a struct; none if there is no such column, or it is something else."""
    if name not in batch.schema.names or not pa.types.is_struct(batch.column(name).type):
        return {}
    column = batch.column(name)
    return dict(zip([column.type.field(at).name for at in range(column.type.num_fields)], column.flatten()))


def _all_null(columns: dict[str, pa.Array], count: int) -> Mask:
    """Return which rows have nothing in any of these columns."""
    found = np.ones(count, np.bool_)
    for column in columns.values():
        if column.null_count < count:
            found &= ~_valid(column)
    return found


def _coded(column: pa.Array) -> tuple[NDArray[np.int64], list[Any]]:
    """Return each row's code, and the meanings of the codes; the last is None, for rows without a value."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = [*coded.dictionary.to_pylist(), None]
    codes = pc.fill_null(coded.indices, len(values) - 1) if coded.null_count else coded.indices
    return codes.to_numpy(zero_copy_only=False).astype(np.int64), values


def possible(mechanism: Mechanism, payloads: Payloads) -> Mask:
    """Tell which payloads a device could have sent.

    Args:
        mechanism: the question's.
        payloads: n of them, shape (n, payload_size), uint8.

    Returns:
        (n,), true where the mechanism's `check` does not refuse.
    """
    return _POSSIBLE.get(mechanism.name, _one_by_one)(mechanism, payloads)


def _one_by_one(mechanism: Mechanism, payloads: Payloads) -> Mask:
    """Check the payloads of any mechanism by its `check` alone."""
    found = np.ones(len(payloads), dtype=np.bool_)
    for row, payload in enumerate(payloads):
        try:
            mechanism.check(payload.tobytes())
        except ReportError:
            found[row] = False
    return found


def _within(values: NDArray[Any], low: int, high: int) -> Mask:
    """Return which rows have all entries between these bounds."""
    return np.asarray(((values >= low) & (values <= high)).all(axis=1))


def _below(values: NDArray[Any], limit: int) -> Mask:
    return np.asarray(values < limit)


def _bits(mechanism: Any, payloads: Payloads) -> Mask:
    used = mechanism.choices - 8 * (mechanism.payload_size - 1)
    return _below(payloads[:, -1] >> used, 1) if used < 8 else np.ones(len(payloads), np.bool_)


def _olh(mechanism: Any, payloads: Payloads) -> Mask:
    seeds = np.ascontiguousarray(payloads[:, :SEED_BYTES]).view(">u4")
    return _within(seeds, 0, PRIME - 1) & _below(big_endian(payloads[:, SEED_BYTES:]), mechanism.hashes)


def _record(mechanism: Any, payloads: Payloads) -> Mask:
    reach = mechanism.radius + NOISE_REACH
    if mechanism.binary:
        return _within(signed(payloads[:, :-1]), -reach, reach) & _below(payloads[:, -1], 2)
    of_response = mechanism.response_grid + NOISE_REACH
    features, response = signed(payloads[:, :-4]), signed(payloads[:, -4:])
    return _within(features, -reach, reach) & _within(response, -of_response, of_response)


def _refusable(mechanism: Any, payloads: Payloads) -> Mask:
    return possible(mechanism.number, payloads[:, :-1]) & _below(payloads[:, -1], 2)


# (mechanism, payloads (n, payload_size)) → which payloads are possible, (n,).
_POSSIBLE: dict[str, Callable[[Any, Payloads], Mask]] = {
    "laplace": lambda _, rows: _within(signed(rows), -LARGEST_SIGNED, LARGEST_SIGNED),
    "gaussian": lambda one, rows: _within(signed(rows), -NOISE_REACH, one.levels + NOISE_REACH),
    "refusable_laplace": _refusable,
    "refusable_gaussian": _refusable,
    "randomized_response": lambda one, rows: _below(big_endian(rows), one.choices),
    "oue": _bits,
    "sue": _bits,
    "subset_selection": lambda one, rows: np.bitwise_count(rows).sum(axis=1, dtype=np.int64) == one.size,
    "olh": _olh,
    "hadamard": lambda one, rows: _below(big_endian(rows), one.columns),
    "memoized": lambda one, rows: possible(one.first, rows),
    "gaussian_statistics": lambda one, rows: _within(signed(rows), -one.largest, one.largest),
    "gaussian_record": _record,
    "sampled_products": lambda one, rows: _below(big_endian(rows), one.patterns * len(one.blocks)),
}
