"""`make test` on a Debian that has Python and make and nothing else: `make bare`, as root.

Tests that need an absent program skip themselves.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import release
from tests.deploy.roots import Inside, debian, folder_of_roots, install, run, whole

# Absolute paths in pip's settings: after file:// or alone, not those of other addresses.
PATHS = re.compile(r"(?:(?<=file://)|(?<!\S))/(?!/)\S+")
# Where a root has files of this machine, as their own place may be taken.
APART = "/run/host"


def main() -> int:
    """Run the tests of the commit at hand in a new root; their exit code."""
    with folder_of_roots("bare") as folder:
        root = install(debian(folder / "debian"), "python3", "python3-venv", "make")
        checkout = root / "srv/ldpkit"
        checkout.mkdir(parents=True)
        release.committed(checkout)
        command = whole(root, ["make", "test"], pip_settings("/srv/ldpkit"))
        return subprocess.run(command, check=False).returncode


def pip_settings(folder: str) -> Inside:
    """How pip works on this machine, for a root: its settings as variables, and the files that they name."""
    listed = run(["python3", "-m", "pip", "config", "list"])
    settings = re.findall(r"^(?:global|user|site|install)\.([\w-]+)='(.*)'$", listed, flags=re.M)
    named = {f"PIP_{name.upper().replace('-', '_')}": value for name, value in settings}
    for name, value in os.environ.items():
        if name.startswith(("PIP_", "SSL_CERT_FILE")) or name.lower().endswith("_proxy"):
            named[name] = value
    paths = sorted({path for value in named.values() for path in PATHS.findall(value) if Path(path).exists()})
    moved = {name: PATHS.sub(_apart, value) for name, value in named.items()}
    # An index links to what is beside it: the folder near the root that it is in.
    sources = [Path(path) if Path(path).is_file() else Path(*Path(path).parts[:3]) for path in paths]
    return Inside(moved, {f"{APART}{source}:ro": source for source in sources}, folder=folder)


def _apart(found: re.Match[str]) -> str:
    return APART + found[0] if Path(found[0]).exists() else found[0]


if __name__ == "__main__":
    sys.exit(main())
