"""What MicroPython's `mip` does with a package's address, for boards that this machine has not.

As https://docs.micropython.org/en/latest/reference/packages.html says: package.json is fetched, then each of
`urls`, an address or a path from that of package.json, into its place below the target; `hashes` are files of
an index, and `deps` other packages, of which ours has none. A board writes nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen


class NotInstalledError(Exception):
    """Something of the package is not there, or is nothing that a board takes."""


def fetched(address: str) -> bytes:
    try:
        with urlopen(address) as answer:
            return answer.read()
    except OSError as error:
        raise NotInstalledError(address) from error


def install(package: str, target: Path) -> list[str]:
    """Install `…/package.json`; the places that were written, below the target."""
    if not package.endswith(".json"):
        package = f"{package.rstrip('/')}/package.json"
    described = json.loads(fetched(package))
    if described.get("hashes") or described.get("deps"):
        raise NotInstalledError("only addresses")
    base = package.rpartition("/")[0]
    for place, address in described["urls"]:
        body = fetched(address if "://" in address else f"{base}/{address}")
        file = target / place
        if target.resolve() not in file.resolve().parents:
            raise NotInstalledError(place)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    return [place for place, _ in described["urls"]]
