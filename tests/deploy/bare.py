"""`make test` on a Debian with Python and make and nothing else: `make bare`, as root, with a Debian mirror.

Copies the commit at hand into a fresh Debian root and runs the README's test command there. pip and apt may
fetch packages. Tests that need an absent program skip themselves; any other failure ends with make's exit
code.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import release
from tests.deploy.check import refuse_unready, working_folder
from tests.deploy.roots import debian, install, pip_settings, whole

PACKAGES = ("python3", "python3-venv", "make")
PLACE = "/srv/ldpkit"


def main() -> int:
    """Make the root, run the command; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--folder", type=Path, help="keep the root in this new folder; default one that is deleted"
    )
    parser.add_argument("command", nargs="*", default=["make", "test"], help="default: make test")
    arguments = parser.parse_args()
    refuse_unready(arguments.folder)
    with working_folder(arguments.folder) as folder:
        root = install(debian(folder / "debian"), *PACKAGES)
        place = root / PLACE.removeprefix("/")
        place.mkdir(parents=True)
        release.committed(place)
        start = time.monotonic()
        inside = replace(pip_settings(), folder=PLACE)
        done = subprocess.run(whole(root, arguments.command, inside), check=False)
        print(f"{' '.join(arguments.command)}: exit {done.returncode} after {time.monotonic() - start:.0f} s")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
