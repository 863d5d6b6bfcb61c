"""Rows in temporary files, split by their ids: so many reports that they do not fit in a worker's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import numpy as np

from ldp_client.documents.errors import InputError
from summaries.engines.addresses import line_of
from summaries.engines.rows import Rows


@contextmanager
def spilling_folder() -> Iterator[str]:
    """Yield a folder for rows, which is deleted with its content. Raises InputError if it cannot be made."""
    with saying_no_room():
        folder = TemporaryDirectory(prefix="ldpkit-")
    with folder as name:
        yield name


@contextmanager
def saying_no_room() -> Iterator[None]:
    """Raise a disk's errors as InputError; the system's error names no file if the disk is full."""
    try:
        yield
    except OSError as error:
        try:
            where = gettempdir()
        except OSError:
            where = "any folder"
        raise InputError(
            f"cannot keep temporary files in {where}: {line_of(error)}; "
            "set TMPDIR to a folder with more room",
            code="engine.no_room",
        ) from None


def spill(folder: str, name: str, split: Iterable[tuple[int, Rows]]) -> None:
    """Write rows into a folder for each part, below this one.

    Args:
        folder: the target folder.
        name: the files' name; existing files of this name are replaced.
        split: each part's number, and some of its rows.

    Raises:
        InputError: the disk is full, or refuses otherwise.
    """
    begun: set[int] = set()
    for number, rows in split:
        path = Path(folder, str(number))
        with saying_no_room():
            path.mkdir(exist_ok=True)
            with open(path / name, "ab" if number in begun else "wb") as file:
                file.write(rows.tobytes())
        begun.add(number)


def spilled(folder: str) -> list[int]:
    """List the parts that have rows, in their order."""
    return sorted(int(path.name) for path in Path(folder).iterdir())


def spilled_rows(folder: str, number: int, width: int) -> list[Rows]:
    """Read all rows of a part.

    Args:
        folder: where they were spilled.
        number: the part's.
        width: bytes of a row.

    Returns:
        The rows of each name's file.
    """
    paths = sorted(Path(folder, str(number)).iterdir())
    return [np.fromfile(path, np.uint8).reshape(-1, width) for path in paths]
