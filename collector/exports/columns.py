"""Convert reports to Arrow columns: report_id, study, version, digest, and a struct `payloads`.

`payloads` has one binary column for each question. If versions have public fields, a struct `public` has one
text column for each field. A decoded export also has the day and the decoded values (summaries/decoding.py).
A question or field that a report's version lacks is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.reports.packing import OneQuestionLayout
from collector.reports.rules import Rules
from collector.store import StoredRow
from schemas import Report

NAMES = pa.dictionary(pa.int32(), pa.string())


def schema_of(
    questions: Iterable[str], public: Sequence[str] = (), shown: Mapping[str, bool] | None = None
) -> pa.Schema:
    """Return the schema for these questions and public fields. shown: {other column: is it numeric}."""
    columns = {"report_id": pa.string(), "study": NAMES, "version": pa.int64(), "digest": NAMES}
    payloads = [(question, pa.binary()) for question in questions]
    if public:
        columns["public"] = pa.struct([(field, pa.string()) for field in public])
    # Parquet has no struct without fields; without reports the client knows of no question.
    if payloads:
        columns["payloads"] = pa.struct(payloads)
    kinds = {name: pa.float64() if is_number else pa.string() for name, is_number in (shown or {}).items()}
    return pa.schema({**columns, **kinds})


def rows_batch(schema: pa.Schema, reports: Iterable[tuple[Report, Mapping[str, Any]]]) -> pa.RecordBatch:
    """Return reports as columns, each with its own cells after the columns of every export."""
    rows = [{**_row(report), **shown} for report, shown in reports]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def packed_batch(
    schema: pa.Schema, study: str, rules: Mapping[int, Rules], page: Sequence[StoredRow]
) -> pa.RecordBatch:
    """Return stored reports as columns, without making an object for each report."""
    ids, versions, payloads = zip(*page)
    types = schema.field("payloads").type
    names = [types.field(number).name for number in range(types.num_fields)]
    answered = pa.array(versions, pa.int64())
    columns = [
        _equally_long(b"".join(ids).hex().encode(), len(page), pa.string()),
        _named(pa.nulls(len(page), pa.int32()).fill_null(0), [study]),
        answered,
        _named(
            pc.index_in(answered, pa.array(list(rules), pa.int64())),
            [version.study.digest for version in rules.values()],
        ),
        *_public_columns(schema, rules, versions, payloads),
        pa.StructArray.from_arrays(_question_columns(names, rules, versions, payloads), fields=list(types)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _public_columns(
    schema: pa.Schema, rules: Mapping[int, Rules], versions: Sequence[int], payloads: Sequence[bytes]
) -> list[pa.Array]:
    """Return the struct of public values, if the schema has it."""
    if "public" not in schema.names:
        return []
    rows = [rules[version].public.unpack(payload) for version, payload in zip(versions, payloads)]
    return [pa.array(rows, schema.field("public").type)]


def _question_columns(
    names: Sequence[str], rules: Mapping[int, Rules], versions: Sequence[int], payloads: Sequence[bytes]
) -> list[pa.Array]:
    layout = rules[versions[0]].layout
    if len(set(versions)) > 1 or isinstance(layout, OneQuestionLayout):
        return [_mixed_column(name, rules, versions, payloads) for name in names]
    rows = np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(len(payloads), layout.size)
    return [
        _equally_long(rows[:, columns].tobytes(), len(rows), pa.binary())
        if (columns := layout.places.get(name))
        else pa.nulls(len(rows), pa.binary())
        for name in names
    ]


def _mixed_column(
    name: str, rules: Mapping[int, Rules], versions: Sequence[int], payloads: Sequence[bytes]
) -> pa.Array:
    """Return the column for reports that answer different versions or different questions."""
    layouts = {version: rules[version].layout for version in rules}
    cells = [layouts[version].find(payload, name) for version, payload in zip(versions, payloads)]
    return pa.array(cells, pa.binary())


def _equally_long(joined: bytes, count: int, kind: pa.DataType) -> pa.Array:
    """Return a column of `count` values of one length, given end to end."""
    ends = np.arange(count + 1, dtype=np.int32) * (len(joined) // count)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(joined)]
    return pa.Array.from_buffers(kind, count, buffers)


def _named(indices: pa.Array, names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))


def _row(report: Report) -> dict[str, Any]:
    return {
        "report_id": report.id,
        "study": report.study,
        "version": report.version,
        "digest": report.digest,
        "public": report.public,
        "payloads": report.payloads,
    }
