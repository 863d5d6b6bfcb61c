"""`ldpkit fit --check`: compare a fit with an earlier result."""

import json
from collections.abc import Iterator, Mapping
from math import sqrt
from pathlib import Path
from typing import Any

from inference.results.provenance import Provenance
from inference.results.saving import RESULT
from ldp_client.documents.errors import InputError
from ldp_client.words.text import visible

Document = Mapping[str, Any]
# Means and sds of two fits differ by more standard errors once in two million times.
MOST_ERRORS = 5.0
# Lower limit of the effective sample size that a file states: a tiny size would let any mean pass.
LEAST_EFFECTIVE = 100.0


def earlier_result(path: str | None, made: Provenance) -> Document | None:
    """Read an earlier posterior.json; return None for no path.

    Args:
        path: the file.
        made: the provenance of the new result.

    Raises:
        InputError: the file is no posterior.json, or was made from other files.
    """
    if path is None:
        return None
    document = _document_of(Path(path))
    stated = document.get("made", {}).get("inputs", [])
    before = sorted(str(file.get("sha256")) for file in stated)
    if before != sorted(str(file.sha256) for file in made.inputs):
        names = ", ".join(visible(str(file.get("name"))) for file in stated) or "no files"
        raise InputError(
            f"{path} was made from other files ({names}): give the files with these SHA-256",
            code="result.input_changed",
        )
    return document


def compared(path: str | None, earlier: Document | None, folder: Path) -> tuple[bool, list[str]]:
    """Compare the result in a folder with an earlier one: every number, else means, sds and verdicts.

    Args:
        path: of the earlier result.
        earlier: that result; without one, nothing differs.
        folder: of the new result.

    Returns:
        Whether it is the same, and the differences in words.
    """
    if earlier is None:
        return True, []
    new = _document_of(folder / RESULT)
    before, now = earlier["questions"], new["questions"]
    if earlier.get("study_digest") != new.get("study_digest") or set(before) != set(now):
        differences = ["it is of other questions, or of another study"]
    elif before == now:
        return True, [f"the same as {path}, to the last bit"]
    else:
        differences = [line for name in now for line in _differences(visible(name), before[name], now[name])]
    if differences:
        return False, [f"NOT the same as {path}", *differences]
    return True, [
        f"the same as {path} within Monte Carlo error; platform and versions decide on the last bits"
    ]


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


def _differences(question: str, before: Document, now: Document) -> Iterator[str]:
    """Yield the differences in one question's entry that Monte Carlo error does not explain."""
    was, word = before["verdict"]["word"], now["verdict"]["word"]
    if was != word:
        yield f"{question}: the verdict was {was}, and is {word}"
    if set(before["parameters"]) != set(now["parameters"]):
        yield f"{question}: it has other parameters"
        return
    for name, row in now["parameters"].items():
        earlier = before["parameters"][name]
        size = max(min(float(each["ess_bulk"] or 0) for each in (earlier, row)), LEAST_EFFECTIVE)
        error = float(row["sd"]) * sqrt(2 / size)
        for key, allowed in (("mean", error), ("sd", error / sqrt(2))):
            # `not <=` also catches NaN.
            if not abs(float(earlier[key]) - float(row[key])) <= MOST_ERRORS * allowed:
                yield f"{question}: {visible(name)}: {key} was {earlier[key]:.6g}, and is {row[key]:.6g}"
