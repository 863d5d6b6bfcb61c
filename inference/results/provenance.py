"""The provenance of a result: versions, day, and the command's call with its input files by digest.

posterior.json stores it as `made`, so that `--check` can repeat the fit.
"""

import hashlib
import os
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from ldp_client.documents.errors import InputError
from schemas.disk import STREAM

PACKAGES = ("ldpkit", "numpyro", "jax", "jaxlib", "numpy", "scipy")
# A word of a call: its parts, of which paths name files.
Word = Sequence[str | Path]


class Input(NamedTuple):
    """An input file. name: without its folder. sha256: of its bytes; None for a stream."""

    name: str
    sha256: str | None


@dataclass(frozen=True)
class Provenance:
    """day: of the fit, in UTC. versions: {package: version}, with Python and the platform.

    inputs: files that were read. call: of `ldpkit fit` or `survey`, with these files' names; "" if the fit
    did not run as a command.
    """

    day: str
    versions: Mapping[str, str]
    inputs: tuple[Input, ...] = ()
    call: str = ""

    def to_document(self) -> dict[str, Any]:
        """Return the member `made` of posterior.json."""
        return {
            "day": self.day,
            "versions": dict(self.versions),
            "inputs": [one._asdict() for one in self.inputs],
            **({"call": self.call} if self.call else {}),
        }


def made_now() -> Provenance:
    """Return the provenance known for any fit: the day and the versions."""
    versions = {name: version(name) for name in PACKAGES}
    versions["python"] = platform.python_version()
    versions["platform"] = f"{platform.system()} {platform.machine()}"
    return Provenance(datetime.now(UTC).date().isoformat(), versions)


def made_by(command: str, words: Iterable[Word]) -> Provenance:
    """Return the provenance of a command's result.

    Reads the input files for their digests. Raises InputError if a file cannot be read.

    Args:
        command: `fit` or `survey`.
        words: all words of the call that determine the numbers.
    """
    now, words = made_now(), [*words]
    paths = [str(part) for parts in words for part in parts if isinstance(part, Path)]
    texts = ["".join(part.name if isinstance(part, Path) else part for part in parts) for parts in words]
    call = shlex.join(["ldpkit", command, *texts])
    return Provenance(now.day, now.versions, tuple(map(input_of, paths)), call)


def words_of(**options: object) -> list[Word]:
    """Return the words of options, one for each value; none for None."""
    return [
        [f"--{name}={value}"]
        for name, values in options.items()
        for value in (values if isinstance(values, tuple) else (values,))
        if value is not None
    ]


def input_of(path: str) -> Input:
    """Return a file's name and digest; None for a pipe, which can be read only once. Raises InputError."""
    name = os.path.basename(path)
    if path == STREAM or (os.path.exists(path) and not os.path.isfile(path)):
        return Input(name, None)
    try:
        with open(path, "rb") as file:
            return Input(name, hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None
