"""What a dataset has beside it while it is being written, changed or deleted."""

from __future__ import annotations

import json
from typing import NamedTuple

from collector.exports.layout import UNFINISHED, Manifest, folder_of, is_bucket_count
from collector.exports.store import Store

# How the mark of an export begins, for people; an archive's is the manifest that it is to have.
SEE = '{"see": "_manifest.json is written last"'


class Buckets(NamedTuple):
    """How many buckets the files of a dataset have, and are to have."""

    former: int
    after: int

    @property
    def is_change(self) -> bool:
        """Whether files are to have other ids than those that they have."""
        return self.former != self.after


def mark(store: Store, study_id: str, buckets: Buckets) -> None:
    """Have a dataset be unfinished. What was begun is what the next export goes on with."""
    text = f'{SEE}, "former": {buckets.former}, "buckets": {buckets.after}}}\n'
    store.write(f"{folder_of(study_id)}/{UNFINISHED}", text.encode())


def pending_buckets(store: Store, study_id: str) -> Buckets | None:
    """What an export that was interrupted was to write; None where none was, or nobody wrote that down."""
    text = store.read(f"{folder_of(study_id)}/{UNFINISHED}")
    if not text or not _is_mark(text):
        return None
    try:
        found = json.loads(text)
        buckets = Buckets(found["former"], found["buckets"])
    except (ValueError, LookupError):
        return None
    return buckets if all(map(is_bucket_count, buckets)) else None


def pending_manifest(store: Store, study_id: str) -> Manifest | None:
    """What an archive was to have when a change of it was interrupted; None where none was."""
    path = f"{folder_of(study_id)}/{UNFINISHED}"
    text = store.read(path)
    # An empty one is an operator's, who says that the archive was deleted.
    return Manifest.from_json(text, store.shown(path)) if text and not _is_mark(text) else None


def _is_mark(text: bytes) -> bool:
    return text.startswith(SEE.encode())
