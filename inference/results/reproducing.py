"""Repeat the fit behind a posterior.json and say whether it is the same.

The command that made it is run anew, in a process of its own, on the files that it read; those are known by
their digests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.results.agreeing import differences, far_keys, other_sentences
from inference.results.diagnostics import mixing
from inference.results.made import Input, Made, Parts, digest_of_file, made_from, made_now
from inference.results.quantity import QUANTILES
from inference.results.saving import EARLIER, RESULT
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import visible

LDPKIT = [sys.executable, "-m", "ldp_client.cli"]
# What a fit exits with where it wrote a result.
WRITTEN = (0, 4)
# What is not the fit's own, and not repeated with it.
BESIDE = ("made", EARLIER)
BITWISE, WITHIN = "bitwise", "within Monte Carlo error"
WORDED, DIFFERENT = "the same but for its sentences", "not the same"
_SENTENCES = {
    BITWISE: "the same, to the last bit",
    WITHIN: "the same within Monte Carlo error, but not to the last bit: platform or versions decide on that",
    WORDED: "NOT the same sentences beside the same numbers and verdict: another release may word them "
    "otherwise, so read what differs",
    DIFFERENT: "NOT the same",
}


@dataclass(frozen=True)
class Repeated:
    """verdict: "bitwise", "within Monte Carlo error", "the same but for its sentences" or "not the same".

    lines, versions: what differs.
    """

    verdict: str
    lines: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the result is the same."""
        return self.verdict in (BITWISE, WITHIN)

    def in_words(self) -> str:
        """The verdict as a sentence."""
        return _SENTENCES[self.verdict]


def reproduce(
    path: Path,
    given: Sequence[str],
    progress: Callable[[str], None] = lambda _message: None,
    *,
    is_quiet: bool = False,
) -> Repeated:
    """Repeat a fit.

    Args:
        path: its posterior.json.
        given: files, among which those that it read are found by digest; others are looked for by name beside
            posterior.json, in the folder above it and in the current one.
        progress: is told when the fit begins.
        is_quiet: whether the fit itself tells no progress either.

    Returns:
        Whether it is the same, and what differs.

    Raises:
        InputError: posterior.json does not say how it was made, a file is another one, or the fit failed.
        UsageError: a file is missing.
    """
    document = _document(path)
    try:
        made = made_from(document.get("made"))
    except InputError as error:
        raise InputError(f"{path}: {error}", code="result.reproduce_invalid") from None
    if not made.inputs:
        raise InputError(
            f"{path} was not made by `ldpkit fit` on files: only that can be repeated",
            code="result.not_reproducible",
        )
    files = [found_input(one, given, path.resolve().parent) for one in made.inputs]
    with tempfile.TemporaryDirectory(prefix="ldpkit-again-") as name:
        folder = Path(name) / "fit"
        progress("repeating the fit")
        _fit(made, files, folder, ["--quiet"] if is_quiet else [])
        again = _document(folder / RESULT)
        lines, verdict = compared(document, again, path.parent, folder)
    return Repeated(verdict, tuple(lines), tuple(_other_versions(made, made_now())))


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None
    except ValueError:
        raise InputError(f"{path} is not JSON", code="files.not_json") from None
    if not isinstance(document, dict) or not isinstance(document.get("questions"), dict):
        raise InputError(f"{path} is no posterior.json", code="result.not_posterior_json")
    return document


def found_input(wanted: Input, given: Sequence[str], beside: Path) -> str:
    """The path of the file that was read. Raises InputError, where there is none UsageError."""
    name = Path(wanted.name).name
    if wanted.sha256 is None:
        raise InputError(
            f"{visible(name)} was read from a stream, which cannot be read again",
            code="result.input_from_stream",
        )
    near = [str(folder / name) for folder in (beside, beside.parent, Path.cwd())]
    there = [*given, *[one for one in near if Path(one).is_file()]]
    for path in there:
        if digest_of_file(path) == wanted.sha256:
            return path
    others = [path for path in there if Path(path).name == name]
    if others:
        raise InputError(
            f"{others[0]} is not the file that was fitted: its SHA-256 is {digest_of_file(others[0])}, and "
            f"posterior.json says {visible(str(wanted.sha256)[:64])}",
            code="result.input_changed",
        )
    raise UsageError(
        f"{visible(name)} is not beside posterior.json: give its path too "
        "(`ldpkit reproduce posterior.json FILE …`)",
        code="result.input_missing",
    )


def _fit(made: Made, files: Sequence[str], folder: Path, more: Sequence[str]) -> None:
    """Run the command again. Raises InputError where it writes nothing."""
    options = [*more, *[f"{option[0]}={_value(option, files)}" for option in made.options]]
    command = [*LDPKIT, "fit", f"--out={folder}", *options, "--", *[files[place] for place in made.files]]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        code = process.wait()
    if code not in WRITTEN:
        raise InputError(
            f"the fit could not be repeated: it ended with exit code {code}", code="result.refit_failed"
        )


def _value(option: Parts, files: Sequence[str]) -> str:
    """What the option is given now, with the files' paths."""
    paths = [files[part] for part in option[1:] if not isinstance(part, str)]
    if option[0] == "--wave" and any("," in path for path in paths):
        raise InputError(
            f"{', '.join(paths)}: move them to paths without a comma", code="result.path_with_comma"
        )
    return "".join([part if isinstance(part, str) else files[part] for part in option[1:]])


def _other_versions(before: Made, now: Made) -> Iterator[str]:
    for name in sorted({*before.versions, *now.versions}):
        was, found = before.versions.get(name, "unknown"), now.versions.get(name, "unknown")
        if was != found:
            yield f"{name} was {visible(str(was))} and is {found}"


def compared(
    before: Mapping[str, Any], again: Mapping[str, Any], folder: Path, other: Path
) -> tuple[list[str], str]:
    """What differs between two results, and the verdict. folder, other: theirs, with the files of draws."""
    if before.get("study") != again["study"] or set(before["questions"]) != set(again["questions"]):
        return ["it is of other questions, or of another study"], DIFFERENT
    lines: list[str] = []
    worded: list[str] = []
    same = all(_equal_draws(folder / f"{name}.nc", other / f"{name}.nc") for name in again["questions"])
    if same and _without_day(before) == _without_day(again):
        return [], BITWISE
    for key in dict.fromkeys([*again, *before]):
        if key not in (*BESIDE, "questions") and before.get(key) != again.get(key):
            lines.append(f"{visible(key)} is another")
    for name, entry in again["questions"].items():
        found = differences(before["questions"][name], entry)
        found += _far_draws(folder / f"{name}.nc", other / f"{name}.nc")
        lines += [f"{name}: {line}" for line in found]
        worded += [f"{name}: {line}" for line in other_sentences(before["questions"][name], entry)]
    return [*lines, *worded], DIFFERENT if lines else WORDED if worded else WITHIN


def _without_day(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in BESIDE}


def _equal_draws(one: Path, other: Path) -> bool:
    """Whether two files hold the same draws to the last bit; without the first nothing is known."""
    if not one.is_file():
        return True
    ours, theirs = _draws(one), _draws(other)
    return ours.keys() == theirs.keys() and all(
        np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours
    )


def _far_draws(one: Path, other: Path) -> list[str]:
    """What cannot be chance between two files of draws; without the first nothing is known."""
    if not one.is_file():
        return []
    was, now = _draws(one), _draws(other)
    if {name: values.shape[2:] for name, values in was.items()} != {
        name: values.shape[2:] for name, values in now.items()
    }:
        return [f"{one.name} has other parameters, or cannot be read"]
    return [
        f"{one.name}: the draws of {visible(name)} are others"
        for name, values in now.items()
        if any(
            far_keys(_numbers(was[name][(..., *place)]), _numbers(values[(..., *place)]))
            for place in np.ndindex(values.shape[2:])
        )
    ]


def _numbers(draws: NDArray[np.float64]) -> dict[str, float]:
    """What ERRORS speaks of, of draws (chains, draws)."""
    found = {"mean": float(draws.mean()), "sd": float(draws.std(ddof=1))}
    found |= {label: float(np.quantile(draws, level)) for label, level in QUANTILES.items()}
    measured = mixing({"": draws})
    return {**found, "ess_bulk": measured.ess_bulk[""], "ess_tail": measured.ess_tail[""]}


def _draws(path: Path) -> dict[str, NDArray[np.float64]]:
    import xarray

    try:
        with xarray.open_datatree(path, engine="h5netcdf") as tree:
            return {str(name): np.asarray(values) for name, values in tree["posterior"].data_vars.items()}
    except (OSError, ValueError, KeyError):
        return {}
