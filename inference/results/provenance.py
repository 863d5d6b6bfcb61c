"""The provenance of a result: versions, day, and the call of `ldpkit fit` with its input files by digest.

posterior.json stores it as `made`, so that `--check` can repeat the fit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import STREAM

PACKAGES = ("ldpkit", "numpyro", "jax", "jaxlib", "numpy", "scipy")
# The options that determine the numbers: files, values, and options that may be repeated.
POSITIONAL = ("study", "reports")
FILES = ("table", "design", "poststratify")
VALUES = (
    "seed", "method", "draws", "chains", "contamination", "level", "interval", "formula", "crosstab",
    "family", "missing", "by", "weights",
)  # fmt: skip
REPEATED = ("question", "prior", "wave")


class Input(NamedTuple):
    """An input file. name: without its folder. sha256: of its bytes; None for a stream."""

    name: str
    sha256: str | None


@dataclass(frozen=True)
class Provenance:
    """day: of the fit, in UTC. versions: {package: version}, with Python and the platform.

    inputs: files that were read. call: of `ldpkit fit`, with these files' names; "" if the fit did not run as
    a command. beside: files of earlier steps, which do not affect the numbers.
    """

    day: str
    versions: Mapping[str, str]
    inputs: tuple[Input, ...] = ()
    call: str = ""
    beside: tuple[Input, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Return the member `made` of posterior.json."""
        return {
            "day": self.day,
            "versions": dict(self.versions),
            "inputs": [one._asdict() for one in self.inputs],
            **({"call": self.call} if self.call else {}),
            **({"beside": [one._asdict() for one in self.beside]} if self.beside else {}),
        }


def made_now() -> Provenance:
    """Return the provenance known for any fit: the day and the versions."""
    versions = {name: version(name) for name in PACKAGES}
    versions["python"] = platform.python_version()
    versions["platform"] = f"{platform.system()} {platform.machine()}"
    return Provenance(datetime.now(UTC).date().isoformat(), versions)


def made_by(arguments: argparse.Namespace, **used: object) -> Provenance:
    """Return the provenance of a result of the command `ldpkit fit`. used: options that it chose itself.

    Reads the input files for their digests. Raises InputError if a file cannot be read.
    """
    paths: list[str] = []
    files = [_named(paths, given) for name in POSITIONAL if (given := getattr(arguments, name)) is not None]
    options = _options({**vars(arguments), **used}, paths)
    now = made_now()
    call = shlex.join(["ldpkit", "fit", *files, *options])
    return Provenance(now.day, now.versions, tuple(map(input_of, paths)), call)


def input_of(path: str) -> Input:
    """Return a file's name and digest. Raises InputError."""
    return Input(os.path.basename(path), digest_of_file(path))


def _named(paths: list[str], path: str) -> str:
    """Return a file's name in the call, and record its path for the digest."""
    paths.append(path)
    return os.path.basename(path)


def _options(given: Mapping[str, Any], paths: list[str]) -> Iterator[str]:
    for name in (*FILES, *VALUES, *REPEATED):
        for value in _listed(given[name]):
            yield f"--{name.replace('_', '-')}={_value(name, value, paths)}"


def _listed(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list) else [value]


def _value(name: str, value: Any, paths: list[str]) -> str:
    if name in FILES or (name == "prior" and value != "flat" and not value.endswith("=flat")):
        return _named(paths, value)
    if name != "wave":
        return str(value)
    lead, equals, rest = value.partition("=")
    wave, listed = (f"{lead}=", rest) if equals else ("", lead)
    return wave + ",".join(_named(paths, path.strip()) for path in listed.split(","))


def digest_of_file(path: str) -> str | None:
    """Return the SHA-256 of a file; None for a pipe, which can be read only once. Raises InputError."""
    if path == STREAM or (os.path.exists(path) and not os.path.isfile(path)):
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None
