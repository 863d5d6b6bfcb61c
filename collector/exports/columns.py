"""Reports as Arrow columns: report_id, study, version, digest, and a struct `payloads` of one binary
column for each question. A question that a report's version does not have is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from collector.reports.packing import PackedReport
from collector.studies.rules import Rules
from schemas import Report

NAMES = pa.dictionary(pa.int32(), pa.string())


def schema_of(questions: Iterable[str]) -> pa.Schema:
    """The columns for these questions."""
    columns = {"report_id": pa.string(), "study": NAMES, "version": pa.int64(), "digest": NAMES}
    payloads = [(question, pa.binary()) for question in questions]
    # Parquet has no struct without fields; without reports the client knows of no question.
    return pa.schema({**columns, "payloads": pa.struct(payloads)} if payloads else columns)


def rows_batch(schema: pa.Schema, reports: Iterable[Report]) -> pa.RecordBatch:
    """Reports as columns."""
    return pa.RecordBatch.from_pylist([_row(report) for report in reports], schema=schema)


def packed_batch(
    schema: pa.Schema, study: str, rules: Mapping[int, Rules], page: Sequence[PackedReport]
) -> pa.RecordBatch:
    """Stored reports as columns, without making an object of each."""
    payloads = schema.field("payloads").type
    questions = [_question_column(payloads.field(i).name, rules, page) for i in range(payloads.num_fields)]
    versions = pa.array([report.version for report in page], pa.int64())
    columns = [
        pa.array([report.id.hex() for report in page], pa.string()),
        _named(pa.nulls(len(page), pa.int32()).fill_null(0), [study]),
        versions,
        _named(
            pc.index_in(versions, pa.array(list(rules), pa.int64())),
            [one.study.digest for one in rules.values()],
        ),
        pa.StructArray.from_arrays(questions, fields=list(payloads)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _named(places: pa.Array, names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(places, pa.array(names, pa.string()))


def _question_column(question: str, rules: Mapping[int, Rules], page: Sequence[PackedReport]) -> pa.Array:
    cells = [rules[report.version].layout.find(report.payloads, question) for report in page]
    return pa.array(cells, pa.binary())


def _row(report: Report) -> dict[str, Any]:
    return {
        "report_id": report.id,
        "study": report.study,
        "version": report.version,
        "digest": report.digest,
        "payloads": report.payloads,
    }
