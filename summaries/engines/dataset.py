"""Datasets: the Parquet files of a study's reports, and the contents that their manifest promises.

A dataset is `ROOT/study_id=<id>/study_version=<number>/part-<bb>.parquet`, with `_manifest.json` in
`ROOT/study_id=<id>`; all reports whose ids begin alike are in parts of one number. ROOT is a folder, or an
address that fsspec opens.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import refuse_replacing
from ldp_client.words.text import counted
from schemas import Study
from summaries.engines.addresses import (
    RefusedError,
    below,
    is_in_store,
    line_of,
    matching,
    on_disk,
    opened,
    whole,
)

FORMAT = "ldpkit.dataset/1"
MANIFEST = "_manifest.json"
_PART = re.compile(r"study_version=(\d+)/(?:[^/]+/)*part-([0-9a-f]{2})\.parquet")
# The files that other programs reading this folder take for its reports: names with . and _ stay out.
_READ = re.compile(r"study_version=(\d+)/(?:[^./_][^/]*/)*[^./_][^/]*\.parquet", re.IGNORECASE)
_CHUNK = 1 << 20
MOST_NAMED = 3


class ReportFile(NamedTuple):
    """One Parquet file of reports.

    Attributes:
        number: its place among all that are read.
        path: its path, or its address.
        bucket: the number of its part; None outside a dataset.
        reports: how many the manifest says, or itself where there is none; None where that is not known.
        size: bytes, as the manifest says.
        digest: their SHA-256, as the manifest says.
    """

    number: int
    path: str
    bucket: int | None = None
    reports: int | None = None
    size: int | None = None
    digest: str = ""

    @property
    def name(self) -> str:
        """Return the name that messages give to the place of its rows."""
        return Path(self.path).name if self.bucket is None else "/".join(self.path.split("/")[-3:])


class Dataset(NamedTuple):
    """Attributes:
    files: the files with reports on a study's version.
    left_out: reports on its other versions, {(version, digest): how many}.
    """

    files: list[ReportFile]
    left_out: dict[tuple[int, str], int]

    @property
    def is_bucketed(self) -> bool:
        """Return True if equal ids are in files of one bucket."""
        return all(file.bucket is not None for file in self.files)


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
    if not all(str(one).strip() for one in given):
        raise InputError(
            "an address of reports is empty: name a dataset's folder, or its Parquet files",
            code="merge.address_empty",
        )
    paths = [str(one).rstrip("/") for one in given]
    if len(paths) == 1 and not paths[0].lower().endswith(".parquet"):
        return _of_manifest(study, whole(paths[0]))
    named = [whole(path) for one in paths for path in _matching(one)]
    wrong = [path for path in named if not path.lower().endswith(".parquet")]
    if wrong:
        raise InputError(
            f"{wrong[0]} is no Parquet file: engines read one dataset, or files whose names end in .parquet",
            code="merge.not_parquet_name",
        )
    return Dataset([ReportFile(number, path) for number, path in enumerate(dict.fromkeys(named))], {})


def _matching(path: str) -> list[str]:
    if not set("*?[") & set(path) or (not is_in_store(path) and Path(path).exists()):
        return [path]
    found = matching(path) if is_in_store(path) else sorted(glob.glob(path, recursive=True))
    if not found:
        raise InputError(f"no file matches {path}", code="merge.no_file")
    return found


def refuse_replacing_part(path: str, study: Study, addresses: Sequence[str]) -> None:
    """Raise InputError if a result would replace a dataset's file, or a file that a pattern matches."""
    for source in filter(None, map(on_disk, addresses)):
        refuse_replacing(path, _matching(source))
        for folder in (os.path.join(source, f"study_id={study.id}"), source):
            inside = os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), ""))
            if inside and os.path.exists(os.path.join(folder, MANIFEST)):
                # Parts of other versions too: losing them would be as bad.
                refuse_replacing(path, [path])


def _of_manifest(study: Study, root: str) -> Dataset:
    inner = f"{root}/study_id={study.id}"
    found: dict[str, bytes] = {}
    refused = None
    for folder in (inner, root):
        try:
            text = _manifest_in(folder)
        except RefusedError as error:
            # One of the two folders does not exist, and some servers answer that with a refusal.
            refused = refused or error
        else:
            found |= {} if text is None else {folder: text}
    if len(found) > 1:
        raise InputError(f"{root} and {inner} have {MANIFEST}: name {inner}", code="merge.nested_dataset")
    if found:
        return _listed(study, *next(iter(found.items())))
    if refused is not None:
        raise refused
    raise InputError(
        f"{root} has no {MANIFEST} of study {study.id}: the dataset is unfinished or elsewhere. Export "
        "it again to a new place, or name its Parquet files",
        code="merge.dataset_unfinished",
    )


def _manifest_in(folder: str) -> bytes | None:
    try:
        with opened(f"{folder}/{MANIFEST}") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(
            f"cannot read {folder}/{MANIFEST}: {line_of(error)}", code="merge.manifest_not_readable"
        ) from None


def _entries(manifest: Mapping[str, Any]) -> list[tuple[str, int, int, str]]:
    """Return the path, reports, bytes and digest of each file. Raises ValueError if some are missing."""
    entries = [
        (str(one["path"]), int(one["reports"]), int(one["bytes"]), str(one["sha256"]))
        for one in manifest["files"]
    ]
    # Otherwise the loss of a file's entry would go unnoticed.
    if sum(reports for _, reports, _, _ in entries) != manifest["reports"]:
        raise ValueError
    return entries


class _Promise(NamedTuple):
    """The contents of a manifest. entries: the path, reports, bytes and digest of each file."""

    digests: dict[int, str]
    entries: list[tuple[str, int, int, str]]


def _promise_of(study: Study, path: str, text: bytes) -> _Promise:
    try:
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise InputError(
                f"{path} is no manifest of a dataset that this ldpkit knows ({FORMAT})",
                code="merge.manifest_unknown",
            )
        if manifest["study"] != study.id:
            raise InputError(
                f"{path} is of study {manifest['study']}, not of {study.id}",
                code="merge.manifest_of_other_study",
            )
        digests = {int(version): str(digest) for digest, version in manifest["documents"].items()}
        return _Promise(digests, _entries(manifest))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"{path} is damaged: export the dataset again", code="merge.manifest_damaged"
        ) from None


def _listed(study: Study, folder: str, text: bytes) -> Dataset:
    path = f"{folder}/{MANIFEST}"
    digests, entries = _promise_of(study, path, text)
    there = below(folder)
    own = {name for name in there if (read := _READ.fullmatch(name)) and int(read[1]) == study.version}
    # Files of other versions would be left out anyway.
    if beside := sorted(own.difference(name for name, _, _, _ in entries)):
        raise _unlisted(folder, beside)
    files: list[ReportFile] = []
    left_out: dict[tuple[int, str], int] = {}
    for name, reports, size, digest in sorted(entries):
        matched = _PART.fullmatch(name)
        if matched is None:
            raise InputError(
                f"{path} names {name}, which is no part of a dataset: export it again",
                code="merge.manifest_names_foreign_file",
            )
        version, bucket = int(matched[1]), int(matched[2], 16)
        if version != study.version:
            key = version, digests.get(version, "")
            left_out[key] = left_out.get(key, 0) + reports
            continue
        files.append(ReportFile(len(files), f"{folder}/{name}", bucket, reports, size, digest))
    if not files:
        raise InputError(
            f"{folder} has no reports on version {study.version} of {study.id}",
            code="merge.no_reports_of_version",
        )
    return Dataset(files, left_out)


def _unlisted(folder: str, beside: Sequence[str]) -> InputError:
    """Return the error for files that a manifest does not list, whose reports would be left out."""
    more = len(beside) - MOST_NAMED
    which = ", ".join(beside[:MOST_NAMED]) + (f" and {counted(more, 'other')}" if more > 0 else "")
    said = f"{folder} has {counted(len(beside), 'Parquet file')} that {MANIFEST} does not list: {which}. "
    named = shlex.quote(f"{glob.escape(folder)}/**/*.parquet")
    copied = f"name the files, {named}, to have each report counted once, or move these away"
    return InputError(f"{said}If two datasets were put together, {copied}", code="merge.dataset_copied")


def refuse_changed(file: ReportFile) -> None:
    """Raise InputError if a file's bytes differ from its manifest; OSError, TransferError on failed reads."""
    if not file.digest:
        return
    found, size = sha256(), 0
    with opened(file.path) as source:
        while chunk := source.read(_CHUNK):
            found.update(chunk)
            size += len(chunk)
    if size != file.size or found.hexdigest() != file.digest:
        raise InputError(
            f"{file.path} is damaged: its bytes are not those of the manifest; export it again",
            code="merge.file_damaged",
        )
