"""What a plan has simulated so far, in a file beside its folder, where an interrupted one goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ldp_client.documents.errors import InputError

FORMAT = "ldpkit.unfinished/1"


class Unfinished:
    """Results of simulations by what decides them; kept in a file as soon as each is known.

    path: of the file, None to keep nothing. Raises InputError for a file that is something else.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        if path is None or not path.exists():
            return
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            known = document["known"] if document["format"] == FORMAT else None
        except (OSError, ValueError, KeyError, TypeError):
            known = None
        if not isinstance(known, dict):
            raise InputError(f"{path} is not what an interrupted plan left: move it away")
        self._known = known

    def get(self, key: Mapping[str, Any]) -> Any:
        """What was kept under this key, or None."""
        return self._known.get(_digest(key))

    def keep(self, key: Mapping[str, Any], found: Any) -> None:
        """Keep a result, in the file too. Raises InputError where that cannot be written."""
        self._known[_digest(key)] = found
        if self._path is None:
            return
        beside = self._path.with_name(f".{self._path.name}-{os.urandom(4).hex()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps({"format": FORMAT, "known": self._known}), encoding="utf-8")
            os.replace(beside, self._path)
        except OSError as error:
            raise InputError(f"cannot write {self._path}: {error.strerror or error}") from None

    def done(self) -> None:
        """Delete the file: all is written."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _digest(key: Mapping[str, Any]) -> str:
    whole = {**key, "versions": [version(name) for name in ("ldpkit", "numpyro", "jax", "numpy")]}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
