"""Write fetched reports as a dataset: many Parquet files below a new folder, or an empty place in a store.

    study_id=ID/study_version=NUMBER/part-BB.parquet
    study_id=ID/_study-NUMBER.json
    study_id=ID/_manifest.json

BB is the first four bits of a report's random id in hexadecimal, so all copies of a report are in one part.
The manifest has the digest of each part, and ldpkit refuses to read a dataset without it. Readers of folders
of Parquet files skip names that begin with _.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from ldp_client.documents.errors import InputError, LdpkitError, TransferError, UsageError
from schemas import Report, Study
from schemas.disk import sync
from summaries.engines.stores import STORES, line_of, store_of

FORMAT = "ldpkit.dataset/1"
MANIFEST = "_manifest.json"
ROWS_PER_GROUP = 10_000
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
        UsageError: the address has a password.
    """
    is_local = "://" not in address
    store: Any = None
    store, root = (store, address) if is_local else _store(address)
    with _errors(address, is_local):
        # 1. Refuse a place that has files.
        existing = sorted(map(str, Path(root).rglob("*"))) if is_local else store.find(root)
        if existing:
            raise InputError(
                f"{address} is not empty ({existing[0]}): an export writes to a new place; name another one",
                code="export.place_not_empty",
            )
        if is_local:
            Path(root).mkdir(parents=True, exist_ok=True)
        # 2. Write all files on this disk, then give their folder its name, or upload it.
        name = f"study_id={study_id}"
        with TemporaryDirectory(prefix=".ldpkit-", dir=root if is_local else None) as temporary:
            folder = Path(temporary) / name
            folder.mkdir(0o700)
            parts = _write_files(reports, study_id, folder, find)
            if is_local:
                # The collector's copy may be deleted next.
                for path in (*folder.rglob("*"), folder):
                    sync(path)
                os.rename(folder, Path(root) / name)
                sync(root)
            else:
                _upload(folder, store, f"{root.rstrip('/')}/{name}")
    return parts


def _store(address: str) -> tuple[Any, str]:
    """Return the file system of a store's address, and the path in it. Raises as `write_dataset`."""
    wrong = InputError(
        f"cannot write files to '{address}': name a folder, or a place such as s3://bucket/studies",
        code="export.unknown_store",
    )
    try:
        parts = urlsplit(address)
    except ValueError:
        raise wrong from None
    if parts.password is not None:
        raise UsageError(
            "an address must not hold a password, which would be written down: set it in the environment, "
            "as the store's own programs read it",
            code="export.password_in_address",
        )
    # Accept only stores that keep written files: fsspec also reads memory, caches and more.
    if parts.scheme not in STORES or "::" in address or not parts.netloc:
        raise wrong
    return store_of(address)


@contextmanager
def _errors(address: str, is_local: bool) -> Iterator[None]:
    """Turn errors into one line: each store's library raises its own kinds."""
    try:
        yield
    except LdpkitError:
        raise
    except Exception as error:
        kind = InputError if is_local else TransferError
        raise kind(f"cannot write {address}: {line_of(error)}") from None


def _write_files(reports: Iterable[Report], study_id: str, folder: Path, find: FindStudy) -> list[Part]:
    """Write the reports of each bucket and version to a file, then the manifest; return the files."""
    studies: dict[str, Study] = {}
    parts: list[Part] = []
    for bucket, some in groupby(reports, lambda report: int(report.id[0], 16)):
        writers: dict[str, ParquetWriter] = {}
        counts: Counter[str] = Counter()
        while rows := list(islice(some, ROWS_PER_GROUP)):
            for digest in {report.digest: None for report in rows}:
                group = [report for report in rows if report.digest == digest]
                if digest not in studies:
                    study = studies[digest] = find(group[0].version, digest)
                    (folder / f"_study-{study.version}.json").write_bytes(study.canonical())
                    (folder / f"study_version={study.version}").mkdir()
                if digest not in writers:
                    study = studies[digest]
                    questions = sorted(question.id for question in study.questions)
                    schema = schema_of(questions, sorted(field.id for field in study.public))
                    file = folder / _part_path(study, bucket)
                    writers[digest] = ParquetWriter(file, schema, write_page_checksum=True)
                batch = rows_batch(writers[digest].schema, [(report, {}) for report in group])
                writers[digest].write_batch(batch)
                counts[digest] += len(group)
        for digest, writer in writers.items():
            writer.close()
            path = _part_path(studies[digest], bucket)
            with open(folder / path, "rb") as content:
                hexadecimal = file_digest(content, "sha256").hexdigest()
            parts.append(Part(path, counts[digest], (folder / path).stat().st_size, hexadecimal))
    document = {
        "format": FORMAT,
        "study": study_id,
        "documents": {digest: study.version for digest, study in studies.items()},
        "reports": sum(part.reports for part in parts),
        "files": [part._asdict() for part in sorted(parts)],
    }
    (folder / MANIFEST).write_text(json.dumps(document, indent=1) + "\n")
    return sorted(parts)


def _part_path(study: Study, bucket: int) -> str:
    return f"study_version={study.version}/part-{bucket:02x}.parquet"


def _upload(folder: Path, store: Any, target: str) -> None:
    """Copy a folder to a store, its manifest last. If that fails, delete the copy."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    try:
        for path in sorted(files, key=lambda file: file.name == MANIFEST):
            store.put_file(str(path), f"{target}/{path.relative_to(folder).as_posix()}")
    except BaseException:
        # Keep the first error, even if the store cannot be reached.
        with suppress(Exception):
            store.rm(target, recursive=True)
        raise


NAMES = pa.dictionary(pa.int32(), pa.string())


def schema_of(
    questions: Iterable[str], public: Sequence[str] = (), shown: Mapping[str, bool] | None = None
) -> pa.Schema:
    """Return the schema for these questions and public fields. shown: {other column: is it numeric}.

    The struct `payloads` has a column of bytes for each question, the struct `public` one of text for each
    field. What a report's version lacks is null.
    """
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
