"""Datasets: the Parquet files of a study's reports, and the contents that their manifest promises.

A dataset is `ROOT/study_id=<id>/study_version=<number>/part-<bb>.parquet`, with `_manifest.json` in
`ROOT/study_id=<id>`; all reports whose ids begin alike are in parts of one number. ROOT is a folder, or an
address that fsspec opens.
"""

import glob
import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from hashlib import file_digest
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow.parquet import ParquetFile, read_metadata

from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted
from schemas import Study
from summaries.engines.packing import COLUMNS, NEEDED
from summaries.engines.stores import DISKS, below, line_of, matching, opened, streamed
from summaries.tables import refuse_repeated

FORMAT = "ldpkit.dataset/1"
MANIFEST = "_manifest.json"
_PART = re.compile(r"study_version=(\d+)/(?:[^/]+/)*part-([0-9a-f]{2})\.parquet")
# The files that other programs reading this folder take for its reports: names with . and _ stay out.
_READ = re.compile(r"study_version=(\d+)/(?:[^./_][^/]*/)*[^./_][^/]*\.parquet", re.IGNORECASE)
# Rows of a file that are read at once.
BATCH = 1 << 15
MOST_NAMED = 3


class ReportFile(NamedTuple):
    """One Parquet file of reports.

    Attributes:
        number: its place among all that are read.
        path: its path, or its address.
        bucket: the number of its part; None outside a dataset.
        reports: how many the manifest says, or itself where there is none; 0 where that is not known.
        digest: the SHA-256 of its bytes, as the manifest says; "" outside a dataset.
    """

    number: int
    path: str
    bucket: int | None = None
    reports: int = 0
    digest: str = ""

    @property
    def name(self) -> str:
        """Return the name that messages give to the place of its rows."""
        return Path(self.path).name if self.bucket is None else "/".join(self.path.split("/")[-3:])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the columns that reports have. Raises InputError for a damaged file, TransferError."""
        try:
            with opened(self.path) as source:
                if self.digest and file_digest(source, "sha256").hexdigest() != self.digest:  # type: ignore[arg-type]
                    raise InputError(
                        f"{self.path} is damaged: its bytes are not those of the manifest; export it again",
                        code="merge.file_damaged",
                    )
                table = ParquetFile(source, page_checksum_verification=True)
                refuse_repeated(table.schema_arrow, self.path)
                columns = [name for name in table.schema_arrow.names if name in COLUMNS]
                # Without these, the columns are those of an export in JSON.
                is_export = set(NEEDED) <= set(columns)
                chosen = columns if is_export else None
                for batch in table.iter_batches(BATCH, columns=chosen, use_threads=False):
                    # A damaged dictionary leaves indices beyond its end, which are found when they are read.
                    batch.validate(full=True)
                    yield batch
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            # An OSError with a number comes from the system, one without it from the file's content.
            if isinstance(error, OSError) and error.errno is not None:
                raise InputError(
                    f"cannot read {self.path}: {error.strerror}", code="files.not_readable"
                ) from None
            raise InputError(
                f"{self.path} is damaged, or is not a Parquet file: export it again", code="files.not_parquet"
            ) from None


class Dataset(NamedTuple):
    """Files of reports.

    Attributes:
        files: the files with reports on a study's version.
        left_out: reports on its other versions, {(version, digest): how many}.
    """

    files: list[ReportFile]
    left_out: dict[tuple[int, str], int]

    @property
    def rows(self) -> int:
        """Return how many rows all files have, as far as that is known."""
        return sum(file.reports for file in self.files)


def find_dataset(study: Study, addresses: str | PathLike[str] | Sequence[str | PathLike[str]]) -> Dataset:
    """Find the files of a study's reports.

    Args:
        study: the document that they answer.
        addresses: a dataset's root, or its folder of this study; or one or several Parquet files, whose names
            may have the wildcards * and ?.

    Returns:
        The files.

    Raises:
        InputError: there are none, or a dataset is unfinished, or another study's.
        MissingExtraError: an address needs fsspec, or a store its library.
        TransferError: a store cannot be reached, or refuses.
    """
    given = [addresses] if isinstance(addresses, str | PathLike) else list(addresses)
    paths = [str(address).rstrip("/") for address in given]
    if not paths or not all(path.strip() for path in paths):
        raise InputError(
            "an address of reports is empty: name a dataset's folder, or its Parquet files",
            code="merge.address_empty",
        )
    # Workers run in the folder of this process, so that relative paths mean the same to them.
    for place, path in enumerate(paths):
        protocol, mark, rest = path.partition("://")
        if not mark or protocol in DISKS:
            paths[place] = os.path.abspath(rest if mark else path)
    if len(paths) == 1 and not paths[0].lower().endswith(".parquet"):
        return _of_manifest(study, paths[0])
    named = dict.fromkeys(name for path in paths for name in matching(path))
    for name in named:
        if not name.lower().endswith(".parquet"):
            raise InputError(
                f"{name} is no Parquet file: engines read one dataset, or files whose names end in .parquet",
                code="merge.not_parquet_name",
            )
    return Dataset([_counted(ReportFile(number, path)) for number, path in enumerate(named)], {})


def _counted(file: ReportFile) -> ReportFile:
    """Return the file with its number of rows; unchanged if that fails, as reading it reports the error."""
    try:
        with streamed(file.path) as source:
            return file._replace(reports=int(read_metadata(source).num_rows))
    except (pa.ArrowException, InputError, OSError):
        return file


def _of_manifest(study: Study, root: str) -> Dataset:
    """Return the files that the manifest of a dataset lists, if no others are beside them."""
    # 1. Read the manifest, which an export writes last.
    name = f"study_id={study.id}"
    folder = root if root.split("/")[-1] == name else f"{root}/{name}"
    path = f"{folder}/{MANIFEST}"
    try:
        with opened(path) as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{root} has no {name}/{MANIFEST}: the dataset is unfinished or elsewhere. Export it again "
            "to a new place, or name its Parquet files",
            code="merge.dataset_unfinished",
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {line_of(error)}", code="files.not_readable") from None
    versions, entries = _parsed(study, path, text)
    # 2. Refuse files of this version that it does not list; files of others would be left out anyway.
    listed = {name for name, _, _ in entries}
    unlisted = [
        name
        for name in sorted(set(below(folder)) - listed)
        if (match := _READ.fullmatch(name)) and int(match[1]) == study.version
    ]
    if unlisted:
        more = len(unlisted) - MOST_NAMED
        shown = ", ".join(unlisted[:MOST_NAMED]) + (f" and {counted(more, 'other')}" if more > 0 else "")
        pattern = shlex.quote(f"{glob.escape(folder)}/**/*.parquet")
        raise InputError(
            f"{folder} has {counted(len(unlisted), 'Parquet file')} that {MANIFEST} does not list: {shown}. "
            f"If two datasets were put together, name the files, {pattern}, to have each report counted "
            "once, or move these away",
            code="merge.dataset_copied",
        )
    # 3. Take this version's files, and count the reports of the others.
    files: list[ReportFile] = []
    left_out: dict[tuple[int, str], int] = {}
    for name, reports, digest in entries:
        matched = _PART.fullmatch(name)
        if matched is None:
            raise _damaged(path)
        version, bucket = int(matched[1]), int(matched[2], 16)
        if version == study.version:
            files.append(ReportFile(len(files), f"{folder}/{name}", bucket, reports, digest))
        else:
            key = version, versions.get(version, "")
            left_out[key] = left_out.get(key, 0) + reports
    if not files:
        raise InputError(
            f"{folder} has no reports on version {study.version} of {study.id}",
            code="merge.no_reports_of_version",
        )
    return Dataset(files, left_out)


def _parsed(study: Study, path: str, text: bytes) -> tuple[dict[int, str], list[tuple[str, int, str]]]:
    """Return a manifest's {version: digest}, and each file's path, reports and SHA-256. Raises InputError."""
    try:
        manifest = json.loads(text)
        if (manifest["format"], manifest["study"]) != (FORMAT, study.id):
            raise InputError(
                f"{path} is a {manifest['format']} of {manifest['study']}, not a {FORMAT} of {study.id}",
                code="merge.manifest_of_other_study",
            )
        versions = {int(version): str(digest) for digest, version in manifest["documents"].items()}
        entries = sorted(
            (str(entry["path"]), int(entry["reports"]), str(entry["sha256"])) for entry in manifest["files"]
        )
        # Otherwise the loss of a file's entry would go unnoticed.
        if sum(reports for _, reports, _ in entries) != manifest["reports"]:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(path) from None
    return versions, entries


def _damaged(path: str) -> InputError:
    return InputError(f"{path} is damaged: export the dataset again", code="merge.manifest_damaged")
