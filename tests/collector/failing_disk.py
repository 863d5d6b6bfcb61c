"""A disk that loses what was not flushed, fills up or is slow, for servers that the tests start."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.kit.programs import need

SMALL_BYTES = 8 << 20
SOURCE = Path(__file__).with_name("disk.c")


class FailingDisk:
    """A folder for a database, and what a loss of power would leave of it. Needs gcc.

    forgets_removals: a file that was removed is there again, unless its folder was flushed since.
    """

    def __init__(
        self, folder: Path, delay_us: int = 0, loses_power: bool = True, forgets_removals: bool = False
    ) -> None:
        need("gcc")
        self.root = folder / "disk"
        self._durable = folder / "durable"
        self._full = folder / "full"
        library = folder / "disk.so"
        for made in (self.root, self._durable):
            made.mkdir()
        command = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True)
        self.environment = {
            "LD_PRELOAD": str(library),
            "LDPKIT_DISK_ROOT": str(self.root),
            "LDPKIT_DISK_FULL": str(self._full),
            "LDPKIT_DISK_DELAY_US": str(delay_us),
        }
        if loses_power:
            self.environment["LDPKIT_DISK_DURABLE"] = str(self._durable)
        if forgets_removals:
            self.environment["LDPKIT_DISK_FORGETS_REMOVALS"] = "1"

    def keep(self) -> None:
        """All that is there by now is flushed."""
        shutil.copytree(self.root, self._durable, dirs_exist_ok=True)

    def fill(self) -> None:
        """Nothing more can be written."""
        self._full.touch()

    def free(self) -> None:
        """There is room again."""
        self._full.unlink()

    def lose_power(self) -> None:
        """Only what was flushed is left; the server must have been killed."""
        # What is copied gets numbers of its own in the file system, not those of the files that it replaces.
        gone = self.root.rename(self.root.with_name("gone"))
        shutil.copytree(self._durable, self.root)
        shutil.rmtree(gone)


class SmallDisk:
    """A file system of a few megabytes. Raises CalledProcessError where mounting is not permitted."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "small"
        self.environment: dict[str, str] = {}
        self._filler = self.root / "filler"
        self.root.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(self.root)]
        subprocess.run(command, check=True, capture_output=True)

    def fill(self) -> None:
        """Take all the room that is left."""
        with self._filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def free(self) -> None:
        """Give it back."""
        self._filler.unlink()

    def remove(self) -> None:
        """Unmount it, whatever still uses it."""
        subprocess.run(["umount", "--lazy", str(self.root)], check=True)
