"""Folders, addresses and datasets given in place of a single file of reports, and how to read them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from ldp_client.documents.errors import InputError
from summaries.engines.addresses import UNLISTED, is_in_store, on_disk
from summaries.engines.dataset import MANIFEST

# Engines read none of these.
_READ_WHOLE = (".ndjson", ".jsonl", ".json", ".csv", ".gz", ".zst", ".zip")
# Parts of the name of a dataset's folder, or of the folder above it.
_PARTS = ("study_id=", "study_version=")


def refuse_places(path: str) -> None:
    """Raise InputError for a folder or an address, with advice."""
    if not is_in_store(path):
        if Path(path).is_dir():
            raise InputError(_of_folder(path), code="reports.folder_given")
        return
    inside, where = on_disk(path), urlsplit(path.replace("[", "%5B").replace("]", "%5D"))
    if inside is not None:
        raise InputError(
            f"{path} is an address: write the path alone, {inside}", code="reports.address_of_file"
        )
    is_served, name = where.scheme in UNLISTED, where.path.lower()
    if name.endswith(_READ_WHOLE) or (is_served and not name.endswith(".parquet")):
        verb = "download" if is_served else "copy"
        # The address may also hold a dataset.
        dataset = "" if name.endswith(_READ_WHOLE) else f"; {_of_dataset(path)}"
        raise InputError(
            f"{path} is an address: {verb} the file of reports first, and name that{dataset}",
            code="reports.address_not_local",
        )
    raise InputError(f"{path} is an address: {_of_dataset(path)}", code="reports.address_of_dataset")


def _of_folder(path: str) -> str:
    names = os.listdir(path)
    if any(name == MANIFEST or name.startswith(_PARTS) or name.endswith(".parquet") for name in names):
        return f"{path} is a folder: {_of_dataset(path)}"
    return f"{path} is a folder without Parquet files: name the file of reports, in Python a list of them"


def _of_dataset(path: str) -> str:
    return (
        f"a dataset is read first, and alone, by `ldpkit summarize STUDY.json {path} --out summary.json`; "
        "give that summary. What needs the reports themselves, as an analysis by formula may, takes them in "
        "one file, of `ldpkit export … --out r.parquet`, or counted in Python by `count_dataset`"
    )
