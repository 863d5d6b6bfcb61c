"""`ldpkit fit --check`: compare a fit with an earlier result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.results.provenance import Provenance
from inference.results.saving import RESULT
from ldp_client.documents.errors import InputError
from ldp_client.words.text import visible

Document = Mapping[str, Any]
# Means and sds of two fits differ by more standard errors once in two million times.
MOST_ERRORS = 5.0
# Lower limit of the effective sample size that a file states: a tiny size would let any mean pass.
LEAST_EFFECTIVE = 100.0
BITWISE = "the same as {path}, to the last bit"
WITHIN = "the same as {path} within Monte Carlo error; platform and versions decide on the last bits"
DIFFERENT = "NOT the same as {path}"


@dataclass(frozen=True)
class Comparison:
    """Attributes:
    same: whether the result is the same.
    lines: the verdict in words, then what differs.
    """

    same: bool
    lines: tuple[str, ...]


def compared_with(path: str | None, made: Provenance) -> Callable[[Path], Comparison]:
    """Return a function that compares a new result's folder with an earlier posterior.json.

    Args:
        path: the earlier posterior.json, in the same folder as its draws. With None, nothing differs.
        made: the provenance of the new result.

    Raises:
        InputError: the file is no posterior.json, or was made from other files.
    """
    return (lambda _folder: Comparison(True, ())) if path is None else _Earlier(path, made).compared


class _Earlier:
    """The earlier result with which a fit is compared."""

    def __init__(self, path: str, made: Provenance) -> None:
        self._path = Path(path)
        self._document = _document_of(self._path)
        _refuse_other_inputs(self._path, self._document, made)

    def compared(self, folder: Path) -> Comparison:
        """Compare the result in a folder: every draw, else each parameter's mean and sd, and the verdict."""
        again = _document_of(folder / RESULT)
        before, now = (one["questions"] for one in (self._document, again))
        if self._document.get("study_digest") != again["study_digest"] or set(before) != set(now):
            return self._told(DIFFERENT, ["it is of other questions, or of another study"])
        same_draws = all(_equal(self._path.parent / f"{name}.nc", folder / f"{name}.nc") for name in now)
        if same_draws and _of_fit(self._document) == _of_fit(again):
            return self._told(BITWISE, [])
        lines = [line for name in now for line in _differences(visible(name), before[name], now[name])]
        return self._told(DIFFERENT if lines else WITHIN, lines)

    def _told(self, verdict: str, lines: list[str]) -> Comparison:
        return Comparison(verdict != DIFFERENT, (verdict.format(path=self._path), *lines))


def _document_of(path: Path) -> Document:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", code="files.not_readable") from None
    except ValueError:
        raise InputError(f"{path} is not JSON", code="files.not_json") from None
    if not isinstance(document, dict) or not isinstance(document.get("questions"), dict):
        raise InputError(f"{path} is no posterior.json", code="result.not_posterior_json")
    return document


def _refuse_other_inputs(path: Path, document: Document, made: Provenance) -> None:
    stated = document.get("made", {}).get("inputs", [])
    before = sorted(str(one.get("sha256")) for one in stated)
    if before != sorted(str(one.sha256) for one in made.inputs):
        names = ", ".join(visible(str(one.get("name"))) for one in stated) or "no files"
        raise InputError(
            f"{path} was made from other files ({names}): give the files with these SHA-256",
            code="result.input_changed",
        )


def _of_fit(document: Document) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "made"}


def _differences(question: str, before: Any, now: Document) -> Iterator[str]:
    """Yield the differences in one question's entry that Monte Carlo error does not explain."""
    was, found = _states(before), _states(now)
    if was != found:
        yield f"{question}: the verdict was {was}, and is {found}"
    parameters = before.get("parameters") if isinstance(before, dict) else None
    if not isinstance(parameters, dict) or set(parameters) != set(now["parameters"]):
        yield f"{question}: it has other parameters"
        return
    for name, row in now["parameters"].items():
        for key, far in _far(parameters[name], row):
            yield f"{question}: {visible(name)}: {key} {far}"


def _states(entry: Any) -> str:
    verdict = entry.get("verdict") if isinstance(entry, dict) else None
    return str(verdict.get("word")) if isinstance(verdict, dict) else ""


def _far(before: Any, now: Document) -> Iterator[tuple[str, str]]:
    """Yield mean and sd if they are too far apart for two fits of one posterior."""
    numbers = [before.get(key) if isinstance(before, dict) else None for key in ("mean", "sd", "ess_bulk")]
    mean, sd, effective = (float(one) if isinstance(one, (int, float)) else np.nan for one in numbers)
    size = max(min(effective, float(now["ess_bulk"] or 0)), LEAST_EFFECTIVE)
    error = float(now["sd"]) * np.sqrt(2 / size)
    for key, was, allowed in (("mean", mean, error), ("sd", sd, error / np.sqrt(2))):
        # `not <=` also catches NaN.
        if not abs(was - float(now[key])) <= MOST_ERRORS * allowed:
            yield key, f"was {was:.6g}, and is {float(now[key]):.6g}"


def _equal(one: Path, other: Path) -> bool:
    """Return True if two files hold the same draws to the last bit."""
    ours, theirs = _draws(one), _draws(other)
    return (
        ours is not None
        and theirs is not None
        and ours.keys() == theirs.keys()
        and all(np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours)
    )


def _draws(path: Path) -> dict[str, NDArray[np.float64]] | None:
    import xarray

    try:
        with xarray.open_datatree(path, engine="h5netcdf") as tree:
            return {str(name): np.asarray(values) for name, values in tree["posterior"].data_vars.items()}
    except (OSError, ValueError, KeyError):
        return None
