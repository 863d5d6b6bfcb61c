"""No dataset inside another one's folder of a study: who reads there would count both, or the inner one."""

from __future__ import annotations

import json
from pathlib import Path

from collector.exports.layout import FORMAT, MANIFEST
from collector.exports.store import Store
from ldp_client.documents.errors import UsageError
from summaries.engines.addresses import on_disk, whole


def refuse_nested(store: Store) -> None:
    """Raises UsageError for an address in a dataset's folder of a study, by its name or what lies there."""
    disk = on_disk(whole(store.address)) if store.is_local else None
    path = Path(disk or store.address)
    folder = next((one for one in (path, *path.parents) if one.name.startswith("study_id=")), None)
    if folder is None and _is_manifest(store.read(MANIFEST)):
        folder = path
    if folder is None and disk is not None:
        folder = next((one for one in path.parents if _has_manifest(one)), None)
    if folder is not None:
        raise UsageError(
            f"{store.address} is in a dataset's folder of one study, {folder.name}: name the folder that "
            "this one is in, or another",
            code="export.nested_dataset",
        )


def _has_manifest(folder: Path) -> bool:
    try:
        return _is_manifest((folder / MANIFEST).read_bytes())
    except OSError:
        return False


def _is_manifest(text: bytes | None) -> bool:
    """Whether it is a dataset's; other programs have files of that name too."""
    try:
        return bool(text) and json.loads(text or b"")["format"] == FORMAT
    except (ValueError, LookupError, TypeError):
        return False
