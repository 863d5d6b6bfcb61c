"""What is asked of published documents: each is read once in a process, as none ever changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from collector.storage.models import DocumentRow

Found = TypeVar("Found")


class ReadOnce(Generic[Found]):
    """What one function finds in documents, by their digests."""

    def __init__(self, read: Callable[[bytes], Found]) -> None:
        """read: of a document's canonical JSON."""
        self._read = read
        self._found: dict[str, Found] = {}

    def of(self, session: Session, versions: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, Found]]:
        """(study, what was found) of each (study, version, digest), as `queries.all_versions` has them."""
        for study, version, digest in versions:
            if digest not in self._found:
                wanted = (DocumentRow.study == study, DocumentRow.version == version)
                text = session.scalars(select(DocumentRow.canonical).where(*wanted)).one()
                self._found[digest] = self._read(text)
            yield study, self._found[digest]
