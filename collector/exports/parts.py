"""One bucket of a dataset: its reports, read once in the order of their ids, a file for each version and day.

A file's bytes depend on its reports alone: it is written in row groups of one size, whatever is read at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple, cast

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from collector.exports.columns import packed_batch, schema_of
from collector.exports.keeping import refuse_gone
from collector.exports.layout import Part, ids_of, part_path
from collector.exports.store import digest_of
from collector.reports.paging import page_limit
from collector.reports.rules import Rules
from collector.storage import queries
from collector.storage.archived import range_page
from collector.storage.database import Database
from collector.storage.queries import StoredRow
from ldp_client.documents.errors import InputError
from summaries.engines.spilling import saying_no_room

# Of a file that is being written, in memory.
MOST_IN_MEMORY = 4 << 20
# With the day behind it, as the driver gives it.
DatedRow = tuple[bytes, int, bytes, object]


class Scope(NamedTuple):
    """Which reports a dataset has. number: the study's key. rules: of all versions. through: the last day.

    deletions: the study's count of them, which ends the export when it rises. left: where files of it are
    that a deletion leaves, "" before there are any.
    """

    study: str
    number: int
    rules: Mapping[int, Rules]
    buckets: int
    through: date | None
    deletions: int
    left: str = ""


class UndoneError(InputError):
    """This machine lacked the memory or the room to make files: of those that are there that says nothing."""

    code = "export.no_memory_or_room"


class Written(NamedTuple):
    """A file that was made. content: its bytes, until the next one is asked for."""

    part: Part
    content: IO[bytes]


def made_parts(database: Database, scope: Scope, bucket: int) -> Iterator[Written]:
    """The files of a bucket, by version and day. Raises UndoneError where there is no room for them, and
    InputError where reports are deleted meanwhile, as their time is over."""
    with saying_no_room(UndoneError), ExitStack() as stack:
        files: dict[tuple[int, str], Growing] = {}
        for page in _pages(database, scope, bucket):
            for key, rows in _apart(page).items():
                if key not in files:
                    files[key] = Growing(stack, scope.study, scope.rules[key[0]])
                files[key].add(rows)
        for version, day in sorted(files):
            yield files[(version, day)].finish(part_path(version, day, bucket))


def _apart(page: Sequence[DatedRow]) -> dict[tuple[int, str], list[StoredRow]]:
    """Reports by version and day, in their order."""
    found: dict[tuple[int, object], list[StoredRow]] = {}
    for report_id, version, payloads, day in page:
        rows = found.get((version, day))
        if rows is None:
            rows = found[(version, day)] = []
        rows.append((report_id, version, payloads))
    # Of one database each day is written in one way.
    return {(version, str(day)): rows for (version, day), rows in found.items()}


def _pages(database: Database, scope: Scope, bucket: int) -> Iterator[Sequence[DatedRow]]:
    ids = ids_of(bucket, scope.buckets)
    limit, newest = page_limit(scope.rules.values()), max(scope.rules)
    while True:
        with database.read() as session:
            page = range_page(session, scope.number, newest, ids, scope.through, limit)
            # Behind the page: PostgreSQL shows each statement what was committed before it.
            require_same_deletions(queries.study_state(session, scope.study), scope)
        yield cast("list[DatedRow]", page)
        if len(page) < limit:
            return
        ids = ids._replace(after=page[-1][0])


def require_same_deletions(study: queries.StudyState | None, scope: Scope) -> None:
    """Raises InputError where reports were deleted since the export began: the rest would pass for all."""
    # Of a study that is gone with them nothing can be run again.
    refuse_gone(study, scope.study, scope.left)
    if study is not None and study.deletions != scope.deletions:
        raise InputError(
            f"reports of {scope.study} were deleted while they were exported, as their time was over: the "
            "dataset is not finished; run it again",
            code="export.deleted_meanwhile",
        )


class Growing:
    """A file under way, on no disk until it is large. stack: ends what it holds.

    It grows by rows of the database, or by columns of files such as it.
    """

    def __init__(self, stack: ExitStack, study: str, rules: Rules) -> None:
        self._study = study
        self._rules = {rules.study.version: rules}
        self._schema = schema_of(sorted(rules.mechanisms), sorted(field.id for field in rules.study.public))
        self._size = page_limit([rules])
        self._waiting: list[StoredRow] = []
        self._columns = self._schema.empty_table()
        self._reports = 0
        self._file = SpooledTemporaryFile(MOST_IN_MEMORY)  # noqa: SIM115
        stack.enter_context(self._file)
        self._writer = stack.enter_context(ParquetWriter(self._file, self._schema, write_page_checksum=True))

    def add(self, rows: Sequence[StoredRow]) -> None:
        """The next reports, by id."""
        self._waiting += rows
        while len(self._waiting) >= self._size:
            self._write()

    def add_columns(self, columns: pa.Table) -> None:
        """The same of a file's reports."""
        self._columns = pa.concat_tables([self._columns, columns])
        while len(self._columns) >= self._size:
            self._write_columns()

    def finish(self, path: str) -> Written:
        """The whole file."""
        if self._waiting:
            self._write()
        if len(self._columns):
            self._write_columns()
        self._writer.close()
        size, digest = digest_of(self._file)
        return Written(Part(path, self._reports, size, digest), self._file)

    def _write(self) -> None:
        group, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
        self._writer.write_batch(packed_batch(self._schema, self._study, self._rules, group))
        self._reports += len(group)

    def _write_columns(self) -> None:
        group, self._columns = self._columns.slice(0, self._size), self._columns.slice(self._size)
        self._writer.write_table(group.combine_chunks(), row_group_size=self._size)
        self._reports += len(group)
