"""A disk that loses what was not flushed, for servers that the tests start."""

import shutil
import subprocess
from pathlib import Path

from tests.kit.programs import need

SOURCE = Path(__file__).with_name("disk.c")


class FailingDisk:
    """A folder for a database, and what a loss of power would leave of it. Needs gcc.

    A file that was removed is there again, unless its folder was flushed since.
    """

    def __init__(self, folder, loses_power=True):
        need("gcc")
        self.root = folder / "disk"
        self._durable = folder / "durable"
        library = folder / "disk.so"
        for made in (self.root, self._durable):
            made.mkdir()
        command = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True)
        self.environment = {"LD_PRELOAD": str(library), "FAILING_DISK_ROOT": str(self.root)}
        if loses_power:
            self.environment["FAILING_DISK_DURABLE"] = str(self._durable)

    def keep(self):
        """All that is there by now is flushed."""
        shutil.copytree(self.root, self._durable, dirs_exist_ok=True)

    def lose_power(self):
        """Only what was flushed is left; the server must have been killed."""
        # What is copied gets numbers of its own in the file system, not those of the files that it replaces.
        gone = self.root.rename(self.root.with_name("gone"))
        shutil.copytree(self._durable, self.root)
        shutil.rmtree(gone)
