"""Reports as rows: of data frames and Arrow tables, as documents, or as lines of text."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from ldp_client.documents.errors import InputError, ReportError
from ldp_client.documents.fields import printable
from ldp_client.words.text import counted, visible
from schemas import Report
from schemas.export_end import FORMAT as END_FORMAT

# The place of a report, and a function that reads it.
Placed = tuple[str, Callable[[], Report]]


class ArrowTable(Protocol):
    """The interface that Polars, PyArrow, pandas and DuckDB share."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return its columns, in Arrow's own memory."""


COLUMNS = ("study", "version", "digest", "payloads")
# Columns of reports in Parquet, and in JSON; of the last two each entry counts.
OWN = ("report_id", "id", *COLUMNS, "public")
NESTED = ("payloads", "public")
# Rows of a table that become objects at once.
ROWS_AT_ONCE = 8192
# The most characters of a column's name in a message.
MOST_SHOWN = 64
NO_REPORTS = (
    "these are no reports, which have study, version, digest and payloads as `ldpkit export` writes them. "
    "Answers get their noise first: `ldpkit perturb`, or ldpkit.perturb_many"
)


def is_table(given: object) -> bool:
    """Tell whether something is a data frame or an Arrow table: pandas', Polars', PyArrow's or another's."""
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")


def in_table(given: Any) -> Iterator[Placed]:
    """Read the reports of a table. Raises InputError if its columns are no reports'."""
    import pyarrow

    try:
        table = pyarrow.table(given)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"the table cannot be read as an Arrow table: {error}", code="reports.not_arrow"
        ) from None
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        shown = ", ".join(visible(name[:MOST_SHOWN]) for name in table.column_names[:8])
        raise InputError(
            f"the table has no column {missing[0]}, but {shown or 'none'}: {NO_REPORTS}",
            code="reports.table_column_missing",
        )
    refuse_repeated(table.schema, "the table")
    batches = table.to_batches(max_chunksize=ROWS_AT_ONCE)
    return in_documents((row for batch in batches for row in batch.to_pylist()), "row")


def refuse_repeated(columns: Iterable[Any], what: str) -> None:
    """Refuse reports with a repeated column: which of the two is meant is unknown.

    Args:
        columns: names; or fields of an Arrow schema, which are searched within structs too.
        what: the source of the columns, for the message.

    Raises:
        InputError: names the first such column.
    """
    seen: set[str] = set()
    for column in columns:
        own = getattr(column, "name", column)
        names = [own] if own in OWN else []
        if own in NESTED and getattr(column, "type", None) is not None:
            names += [f"{own}.{column.type.field(at).name}" for at in range(column.type.num_fields)]
        for name in names:
            if name in seen:
                shown = visible(name[:MOST_SHOWN])
                raise InputError(
                    f"{what} has the column {shown} twice: leave one out",
                    code="reports.duplicate_table_column",
                )
            seen.add(name)


def in_documents(documents: Iterable[object], what: str = "entry") -> Iterator[Placed]:
    """Read reports, each a Report, its document or its line of JSON; `what` is the name of each.

    Raises InputError for anything else, and if the end line of an export states another number.
    """
    count = 0
    for number, found in enumerate(documents, 1):
        where = f"{what} {number}"
        if isinstance(found, str | bytes):
            if not found.strip():
                continue
            end = _end_in(found)
        else:
            end = found if isinstance(found, Mapping) and found.get("format") == END_FORMAT else None
        if end is None:
            count += 1
            yield where, partial(_report_of, found, where)
            continue
        # The end of an export states the number of reports before it.
        if end.get("reports") != count:
            raise InputError(
                f"{where}: {counted(count, 'report')} before the end of an export that says "
                f"{printable(end.get('reports'))}: export it again",
                code="reports.wrong_end_of_export",
            )
        count = 0


def report_of_row(row: Mapping[str, Any]) -> Report:
    """Return a report from the columns that `ldpkit export` writes, or from the columns of its JSON.

    `payloads` has a field for each question, of which None and not-a-numbers are ignored. Other columns, such
    as decoded ones, are ignored.
    """
    row = _there(row)
    if "report_id" not in row and "id" in row:
        values = {name: _there(row[name]) for name in ("payloads", "public") if row.get(name)}
        return Report.from_document({**row, **values})
    try:
        payloads = _there(row["payloads"])
        head = (row["report_id"], row["study"], row["version"], row["digest"])
        report = Report(*head, payloads, public=_there(row.get("public") or {}))
    except (KeyError, AttributeError, TypeError):
        raise ReportError("", "the row lacks a column of an export", code="report.column_missing") from None
    if not all(isinstance(payload, bytes) for payload in payloads.values()):
        raise ReportError("payloads", "must be binary columns", code="report.payload_not_binary")
    # The rules of a report document hold for a row too.
    return Report.from_document(report.to_document())


def _report_of(found: object, where: str) -> Report:
    if isinstance(found, Report):
        return found
    if isinstance(found, str | bytes):
        return Report.from_json(found)
    if not isinstance(found, Mapping):
        raise InputError(f"{where} is a {type(found).__name__}: {NO_REPORTS}", code="reports.row_wrong_type")
    if not isinstance(found.get("payloads"), Mapping):
        raise InputError(f"{where} has no payloads: {NO_REPORTS}", code="reports.row_without_payloads")
    return report_of_row(found)


def _end_in(line: str | bytes) -> Mapping[str, Any] | None:
    """Return the document of a line that ends an export."""
    text = line if isinstance(line, str) else line.decode(errors="replace")
    if END_FORMAT not in text[:80]:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _there(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that are not missing; tables turn whole numbers in columns with gaps into floats."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in row.items()
        # Only what is no number differs from itself.
        if value is not None and value == value
    }
