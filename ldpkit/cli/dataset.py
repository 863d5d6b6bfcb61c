"""Write fetched reports as a dataset: many Parquet files below a new folder, or an empty place in a store.

    study_id=ID/study_version=NUMBER/part-BB.parquet
    study_id=ID/_study-NUMBER.json
    study_id=ID/_manifest.json

BB is the first four bits of a report's random id in hexadecimal, so all copies of a report are in one part.
The manifest is written last, and ldpkit refuses to read a dataset without it. Readers of folders of Parquet
files skip names that begin with _.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

from pyarrow.parquet import ParquetWriter

from ldp_client.documents.errors import InputError, LdpkitError
from ldpkit.cli.columns import rows_batch, schema_of
from ldpkit.cli.store import Store, digest_of
from schemas import Report, Study

FORMAT = "ldpkit.dataset/1"
MANIFEST = "_manifest.json"
ROWS_PER_GROUP = 10_000
# Bytes of a growing file that stay in memory.
MOST_IN_MEMORY = 4 << 20
# Returns a version's document, by its number and digest.
FindStudy = Callable[[int, str], Study]


class Part(NamedTuple):
    """A file of reports. path: below the study's folder. bytes: its length. sha256: in hexadecimal."""

    path: str
    reports: int
    bytes: int
    sha256: str


def write_dataset(reports: Iterable[Report], study_id: str, address: str, find: FindStudy) -> list[Part]:
    """Write a dataset, completely or not at all; return its files.

    Args:
        reports: every report of the study, in the order of their ids.
        study_id: the study.
        address: a folder, or a place such as s3://bucket/habits; it must be empty.
        find: returns a version's document.

    Raises:
        InputError: the place is not empty, or cannot be written.
        TransferError: a store cannot be reached, or refuses.
    """
    store = Store(address)
    if found := store.paths(""):
        raise InputError(
            f"{address} is not empty ({found[0]}): an export writes to a new place; name another one",
            code="export.place_not_empty",
        )
    with _all_or_nothing(store, f"study_id={study_id}") as write:
        parts: list[Part] = []
        studies: dict[str, Study] = {}

        def study_of(report: Report) -> Study:
            if report.digest not in studies:
                studies[report.digest] = find(report.version, report.digest)
                write(f"_study-{report.version}.json", studies[report.digest].canonical())
            return studies[report.digest]

        for bucket, some in groupby(reports, lambda report: int(report.id[0], 16)):
            for file in _files_of(some, study_of):
                size, digest = digest_of(file.content)
                path = f"study_version={file.version}/part-{bucket:02x}.parquet"
                write(path, file.content)
                parts.append(Part(path, file.reports, size, digest))
        versions = {digest: study.version for digest, study in studies.items()}
        write(MANIFEST, _manifest(study_id, versions, sorted(parts)))
    return sorted(parts)


@contextmanager
def _all_or_nothing(store: Store, folder: str) -> Iterator[Callable[..., None]]:
    """Yield a function that writes a file in a folder; if the block fails, the folder is deleted."""

    def write(name: str, content: bytes | IO[bytes]) -> None:
        store.write(f"{folder}/{name}", content)

    store.begin(folder)
    try:
        yield write
        store.settle(folder)
    except BaseException:
        # Keep the first error, even if the store cannot be reached.
        with suppress(LdpkitError):
            store.remove(folder)
        raise


class _File:
    """A growing Parquet file of a version's reports; it moves from memory to disk when it is large."""

    def __init__(self, study: Study) -> None:
        self.version = study.version
        self.content = SpooledTemporaryFile(MOST_IN_MEMORY)  # noqa: SIM115
        self.reports = 0
        self._schema = schema_of(
            sorted(question.id for question in study.questions), sorted(field.id for field in study.public)
        )
        self._waiting: list[Report] = []
        self._writer = ParquetWriter(self.content, self._schema, write_page_checksum=True)

    def add(self, report: Report) -> None:
        self._waiting.append(report)
        if len(self._waiting) == ROWS_PER_GROUP:
            self._write()

    def finish(self) -> None:
        if self._waiting:
            self._write()
        self._writer.close()

    def _write(self) -> None:
        self._writer.write_batch(rows_batch(self._schema, [(report, {}) for report in self._waiting]))
        self.reports += len(self._waiting)
        self._waiting.clear()


def _files_of(reports: Iterable[Report], study_of: Callable[[Report], Study]) -> list[_File]:
    """Return a file for each version, once all reports of a bucket have arrived."""
    files: dict[str, _File] = {}
    for report in reports:
        if report.digest not in files:
            files[report.digest] = _File(study_of(report))
        files[report.digest].add(report)
    for file in files.values():
        file.finish()
    return list(files.values())


def _manifest(study_id: str, documents: Mapping[str, int], parts: list[Part]) -> bytes:
    document = {
        "format": FORMAT,
        "study": study_id,
        "documents": documents,
        "reports": sum(part.reports for part in parts),
        "files": [part._asdict() for part in parts],
    }
    return (json.dumps(document, indent=1) + "\n").encode()
