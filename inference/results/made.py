"""How a result was made: versions, day, and the call of `ldpkit fit` with its input files by digest.

It stands in posterior.json as `made`, so that `ldpkit reproduce` can repeat the fit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

from ldp_client.documents.errors import InputError
from ldp_client.files.disk import STREAM

PACKAGES = ("ldpkit", "numpyro", "jax", "jaxlib", "numpy", "scipy")
# What decides the numbers: files, values, and what may be repeated.
POSITIONAL = ("study", "reports")
FILES = ("table", "design", "poststratify")
VALUES = (
    "seed", "method", "draws", "chains", "contamination", "prob", "interval", "formula", "cross", "family",
    "blanks", "by", "weights",
)  # fmt: skip
REPEATED = ("question", "prior", "wave")
OPTIONS = frozenset(f"--{name.replace('_', '-')}" for name in (*FILES, *VALUES, *REPEATED))
FILE_OPTIONS = frozenset(f"--{name}" for name in FILES)
# Of an argument: text, and the numbers of input files in between.
Parts = tuple[str | int, ...]


class Input(NamedTuple):
    """One file that was read. name: without its folder. sha256: of its bytes; None of a stream."""

    name: str
    sha256: str | None


@dataclass(frozen=True)
class Made:
    """day: of the fit, in UTC. versions: {package: version}, of Python and the platform too.

    inputs: files that were read. files: the numbers of the study's and the reports' among them. options: each
    an option and what it was given; none where the fit was no command. beside: files of what was done before,
    which decide no number.
    """

    day: str
    versions: Mapping[str, str]
    inputs: tuple[Input, ...] = ()
    files: tuple[int, ...] = ()
    options: tuple[Parts, ...] = field(default=())
    beside: tuple[Input, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The member `made` of posterior.json."""
        return {
            "day": self.day,
            "versions": dict(self.versions),
            "inputs": [one._asdict() for one in self.inputs],
            "files": list(self.files),
            "options": [list(option) for option in self.options],
            **({"beside": [one._asdict() for one in self.beside]} if self.beside else {}),
        }


def made_now() -> Made:
    """What is known of any fit: the day and the versions."""
    versions = {name: version(name) for name in PACKAGES}
    versions["python"] = platform.python_version()
    versions["platform"] = f"{platform.system()} {platform.machine()}"
    return Made(datetime.now(UTC).date().isoformat(), versions)


def made_by(arguments: argparse.Namespace, **used: object) -> Made:
    """How the command `ldpkit fit` makes a result. used: options that it chose itself.

    Reads the input files, for their digests. Raises InputError where one cannot be read.
    """
    paths: list[str] = []
    files = tuple(
        _place(paths, given) for name in POSITIONAL if (given := getattr(arguments, name)) is not None
    )
    options = tuple(_options({**vars(arguments), **used}, paths))
    inputs = tuple(input_of(path) for path in paths)
    now = made_now()
    return Made(now.day, now.versions, inputs, files, options)


def input_of(path: str) -> Input:
    """A file as it was read. Raises InputError."""
    return Input(os.path.basename(path), digest_of_file(path))


def _place(paths: list[str], path: str) -> int:
    paths.append(path)
    return len(paths) - 1


def _options(given: Mapping[str, Any], paths: list[str]) -> Iterator[Parts]:
    for name in (*FILES, *VALUES, *REPEATED):
        for value in _listed(given[name]):
            yield (f"--{name.replace('_', '-')}", *_parts(name, value, paths))


def _listed(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list) else [value]


def _parts(name: str, value: Any, paths: list[str]) -> Parts:
    if name in FILES:
        return (_place(paths, value),)
    if name == "prior" and value != "flat" and not value.endswith("=flat"):
        return (_place(paths, value),)
    if name != "wave":
        return (str(value),)
    lead, equals, rest = value.partition("=")
    wave, listed = (f"{lead}=", rest) if equals else ("", lead)
    parts: list[str | int] = [wave]
    for place, path in enumerate(listed.split(",")):
        parts.append("," if place else "")
        parts.append(_place(paths, path.strip()))
    return tuple(part for part in parts if part != "")


def digest_of_file(path: str) -> str | None:
    """The SHA-256 of a file; None of a pipe, which can be read only once. Raises InputError."""
    if path == STREAM or (os.path.exists(path) and not os.path.isfile(path)):
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None


def made_from(document: object) -> Made:
    """Read the member `made`. Raises InputError where it is none, or names an option that a fit has not."""
    wrong = InputError("its member `made` does not say how it was made", code="result.made_unreadable")
    if not isinstance(document, dict):
        raise wrong
    try:
        inputs = tuple(Input(str(one["name"]), one["sha256"]) for one in document["inputs"])
        options = tuple(tuple(option) if isinstance(option, list) else () for option in document["options"])
        made = Made(
            str(document["day"]), dict(document["versions"]), inputs, tuple(document["files"]), options
        )
    except (KeyError, TypeError, ValueError):
        raise wrong from None
    numbers = [part for option in made.options for part in option[1:] if not isinstance(part, str)]
    if not all(type(one) is int and 0 <= one < len(inputs) for one in (*numbers, *made.files)):
        raise wrong
    if not all(_may_stand(option) for option in made.options):
        raise wrong
    return made


def _may_stand(option: Parts) -> bool:
    """Whether a fit has the option, and what stands in it as text is no file: those are inputs."""
    if len(option) < 2 or not isinstance(option[0], str) or option[0] not in OPTIONS:
        return False
    name, texts = str(option[0]), [part for part in option[1:] if isinstance(part, str)]
    if name in FILE_OPTIONS:
        return not texts
    if name == "--prior":
        return all(text == "flat" or text.endswith("=flat") for text in texts)
    if name == "--wave":
        return all(
            text == "," or (place == 0 and text.find("=") == len(text) - 1)
            for place, text in enumerate(texts)
        )
    return len(option) == 2 and len(texts) == 1
