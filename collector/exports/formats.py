"""Formats of an export, each a stream of bytes made page by page."""

from __future__ import annotations

import csv
import io
from binascii import b2a_base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from collector.db import problem_of
from collector.exports.dated import dated_line
from collector.reports.paging import Export
from collector.store import PackedReport
from schemas.export_end import end_line


class CutOffError(Exception):
    """An export that cannot be read to its end; the log has the reason."""


class Format(NamedTuple):
    """media_type: its media type. write: the bytes of an export. dated: whether its reports need their days.

    cut_off: bytes sent when the export fails in the middle, so that readers reject the partial file. granian
    ends a failed stream as if it were complete. Empty if readers of the format notice a missing end.
    """

    media_type: str
    write: Callable[[Export], Iterator[bytes]]
    cut_off: bytes = b""
    dated: bool = False

    def stream(self, export: Export) -> Iterator[bytes]:
        """Yield the parts of `write`. If it fails in the middle, yield `cut_off` and raise CutOffError."""
        parts = self.write(export)
        yield next(parts)
        try:
            yield from parts
        except Exception as error:
            problem = problem_of(error)
            yield self.cut_off
            # Servers log an exception that leaves a stream. Its text and causes may quote reports.
            raise CutOffError(f"an export was cut off: {problem.kind.name}") from None


def ndjson(export: Export) -> Iterator[bytes]:
    """Yield one report a line. The last line counts them: an export without it was cut off."""
    return _lines(export, lambda row: _text(export, PackedReport._make(row)))


def dated(export: Export) -> Iterator[bytes]:
    """Yield one report a line, each with its day. The last line counts them."""

    def line(row: Sequence[Any]) -> bytes:
        return dated_line(str(row[3]).encode(), _text(export, PackedReport._make(row[:3])))

    return _lines(export, line)


def _text(export: Export, report: PackedReport) -> bytes:
    return export.rules[report.version].form.write(report)


def _lines(export: Export, line: Callable[[Sequence[Any]], bytes]) -> Iterator[bytes]:
    count = 0
    for page in export.pages:
        count += len(page)
        # Yield a page at a time: servers and readers do some work for each part.
        yield b"".join([line(row) + b"\n" for row in page])
    yield end_line(count).encode()


def csv_lines(export: Export) -> Iterator[bytes]:
    """Yield a header, then one report a line: id, study, version, digest, public values, base64 payloads."""
    names = (export.questions, export.public)
    yield _csv([csv_header(*names)])
    for page in export.pages:
        yield _csv([_csv_row(export, *names, report) for report in map(PackedReport._make, page)])


def csv_header(questions: Sequence[str], public: Sequence[str]) -> list[str]:
    """Return the columns' names."""
    values = [f"public.{field}" for field in public]
    payloads = [f"payloads.{question}" for question in questions]
    return ["report_id", "study", "version", "digest", *values, *payloads]


def arrow(export: Export) -> Iterator[bytes]:
    """Yield an Arrow IPC stream; see columns.py."""
    from pyarrow import ipc

    # If a dictionary grew, send only its new entries.
    options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    return _columns(export, lambda sink, schema: ipc.new_stream(sink, schema, options=options))


def parquet(export: Export) -> Iterator[bytes]:
    """Yield a Parquet file, one row group a page; see columns.py."""
    from pyarrow.parquet import ParquetWriter

    return _columns(export, lambda sink, schema: ParquetWriter(sink, schema, write_page_checksum=True))


def _columns(export: Export, begin: Callable[[_Sink, Any], Any]) -> Iterator[bytes]:
    """Yield a file of columns. begin: returns a writer to a sink with a schema."""
    from collector.exports.columns import packed_batch, schema_of

    schema = schema_of(export.questions, export.public)
    sink = _Sink()
    with begin(sink, schema) as writer:
        for page in export.pages:
            writer.write_batch(packed_batch(schema, export.study, export.rules, page))
            yield sink.take()
    yield sink.take()


# A quote that does not end, and a message of negative length.
CSV_CUT_OFF = b'"This export was cut off. Fetch it again.'
ARROW_CUT_OFF = b"\xff" * 8

FORMATS = {
    "ndjson": Format("application/x-ndjson", ndjson),
    "dated": Format("application/x-ndjson", dated, dated=True),
    "csv": Format("text/csv; charset=utf-8", csv_lines, CSV_CUT_OFF),
    "arrow": Format("application/vnd.apache.arrow.stream", arrow, ARROW_CUT_OFF),
    "parquet": Format("application/vnd.apache.parquet", parquet),
}


class _Sink(io.RawIOBase):
    """A file that keeps what is written until it is taken."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: object) -> int:
        part = bytes(memoryview(data))  # type: ignore[arg-type]
        self._written.append(part)
        self._position += len(part)
        return len(part)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        taken = b"".join(self._written)
        self._written.clear()
        return taken


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _csv_row(
    export: Export, questions: Sequence[str], public: Sequence[str], report: PackedReport
) -> list[object]:
    rules = export.rules[report.version]
    values = rules.public.unpack(report.payloads)
    payloads = [rules.layout.find(report.payloads, question) for question in questions]
    cells = [b2a_base64(payload or b"", newline=False).decode() for payload in payloads]
    shown = [values.get(field, "") for field in public]
    return [report.id.hex(), export.study, report.version, rules.study.digest, *shown, *cells]
