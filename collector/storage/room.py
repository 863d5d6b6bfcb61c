"""Whether the disks have room for SQLite to write its file anew, and which of them lacks it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from math import ceil
from pathlib import Path

from collector.storage.wal import beside

# Of an SQLite error's code: a file that cannot be made or written, or has no room.
KIND, OF_FILES = 0xFF, (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
MIB = 1 << 20
# What the log says of each page beside it.
FRAME_BYTES = 24
# So much of the new file SQLite keeps in memory before it needs a temporary folder.
CACHE_BYTES = 2000 << 10
NAME_ANOTHER = "name another in the environment variable SQLITE_TMPDIR, and start the server again"


class Room:
    """What writing a file anew takes: a copy in the temporary folder first, then one in the file's log.

    file: the database. connection: one to it.
    """

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self._file = file
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        # As SQLite counts it: of a file whose pages are still in its log, its own size says nothing.
        self._most = (pages - free) * (size + FRAME_BYTES)

    def doubt(self) -> str:
        """Why the file certainly cannot be written anew; "" where it may be."""
        # SQLite merges pages of which less than a third is used, and the new file's are full.
        least = self._most // 3
        return self._lack(least, max(0, least - CACHE_BYTES))

    def why(self, error: sqlite3.Error) -> str:
        """What to do after an error of files."""
        if temporary_folder() is None:
            return f"SQLite finds no temporary folder that can be written, as it must: {NAME_ANOTHER}"
        return self._lack(self._most, self._most) or (
            f"SQLite could not write {_mib(self._most)} in the temporary folder {temporary_folder()} and "
            f"then in {self._file.parent} ({error}): free both, or of the former {NAME_ANOTHER}"
        )

    def _lack(self, log: int, temporary: int) -> str:
        """Which disk has less than so many bytes for the log, or in the temporary folder; "" if none."""
        place, folder = self._file.parent, temporary_folder()
        here = _free(place) + _size(beside(self._file, "-wal"))
        most = _mib(self._most)
        if folder is not None and _is_one_disk(folder, place):
            if here >= log + temporary:
                return ""
            return (
                f"SQLite needs up to {most} twice, in the temporary folder {folder} and in {place}, and "
                f"their disk has {_mib(here, int)}: make room, or of the former {NAME_ANOTHER}"
            )
        if here < log:
            return f"SQLite needs up to {most} in {place}, whose disk has {_mib(here, int)}: make room there"
        if folder is not None and _free(folder) < temporary:
            return (
                f"SQLite needs up to {most} in the temporary folder {folder}, whose disk has "
                f"{_mib(_free(folder), int)}: make room there, or {NAME_ANOTHER}"
            )
        return ""


def is_of_files(error: sqlite3.Error) -> bool:
    """Whether a file could not be made or written, wherever it is."""
    return getattr(error, "sqlite_errorcode", 0) & KIND in OF_FILES


def temporary_folder() -> Path | None:
    """Where SQLite puts what does not fit into memory (https://www.sqlite.org/tempfiles.html, section 5)."""
    named = [os.environ.get(name, "") for name in ("SQLITE_TMPDIR", "TMPDIR")]
    for folder in [*named, "/var/tmp", "/usr/tmp", "/tmp", "."]:
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return Path(folder)
    return None


def _is_one_disk(folder: Path, other: Path) -> bool:
    return folder.stat().st_dev == other.stat().st_dev


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _size(file: Path) -> int:
    """Bytes of a file that need not be there."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _mib(count: int, whole: Callable[[float], int] = ceil) -> str:
    """What is needed rounded up, and what there is down."""
    return f"{whole(count / MIB)} MiB"
