"""Values computed from published documents, read once in a process: a document never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from collector.models import DocumentRow

Found = TypeVar("Found")


class ReadOnce(Generic[Found]):
    """A cache of a function's values for documents, by their digests."""

    def __init__(self, read: Callable[[bytes], Found]) -> None:
        """read: computes the value from a document's canonical JSON."""
        self._read = read
        self._found: dict[str, Found] = {}

    def of(self, session: Session, versions: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, Found]]:
        """Yield (study, value) for each (study, version, digest), as `store.all_versions` returns them."""
        for study, version, digest in versions:
            if digest not in self._found:
                wanted = (DocumentRow.study == study, DocumentRow.version == version)
                text = session.scalars(select(DocumentRow.canonical).where(*wanted)).one()
                self._found[digest] = self._read(text)
            yield study, self._found[digest]
