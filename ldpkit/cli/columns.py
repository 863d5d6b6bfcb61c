"""Reports as Arrow columns: report_id, study, version, digest, and a struct `payloads`.

`payloads` has one binary column for each question. If versions have public fields, a struct `public` has one
text column for each field. A decoded export also has the day and the decoded values (summaries/decoding.py).
A question or field that a report's version lacks is null.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

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
    rows = [
        {
            "report_id": report.id,
            "study": report.study,
            "version": report.version,
            "digest": report.digest,
            "public": report.public,
            "payloads": report.payloads,
            **shown,
        }
        for report, shown in reports
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)
