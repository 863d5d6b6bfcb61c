"""Save a result in a new folder, completely or not at all: posterior.json and the draws of each question."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.results.provenance import Provenance, made_now
from ldp_client.documents.errors import InputError, UsageError
from schemas.disk import STREAM

if TYPE_CHECKING:
    from inference.results.posterior import Posterior

RESULT = "posterior.json"
_FILE_NAME = re.compile(r"[A-Za-z0-9][\w.\-]{0,99}")


def check_file_name(outcome: str) -> None:
    """Raise InputError for an outcome whose name cannot be part of a file name."""
    if not _FILE_NAME.fullmatch(outcome):
        raise InputError(
            f"files are named by the outcome, and {outcome!r} is no file name: rename the column, using "
            "letters, digits and _",
            code="files.outcome_unfit_as_name",
        )


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` only after everything was written.

    Raises InputError if the target exists and is not an empty folder, and if writing fails, for example on a
    full disk; UsageError for standard output.
    """
    if str(target) == STREAM:
        raise UsageError(
            "--out - is standard output, and this command writes a folder: name one",
            code="result.to_standard_output",
        )
    target = target.resolve()
    if target.exists() and not (target.is_dir() and target != Path.cwd() and not any(target.iterdir())):
        raise InputError(f"{target} is not a new folder: name one that does not exist", code="result.exists")
    temporary = target.parent / f".ldpkit-{os.urandom(8).hex()}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The umask decides who may read a new folder.
        temporary.mkdir()
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        yield temporary
        # The system refuses this if the target has files by now.
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}", code="files.not_writable"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write JSON for people and programs, with null for numbers that are not finite: JSON has none."""
    path.write_text(
        json.dumps(_without_nan(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        encoding="utf-8",
    )


def save_posteriors(
    posteriors: Mapping[str, Posterior], folder: Path, made: Provenance | None = None
) -> None:
    """Write posterior.json for all questions of one study, and each question's draws, into a new folder.

    made: the fit's provenance.
    """
    first = next(iter(posteriors.values()))
    document = {
        "study_digest": first.study_digest,
        "seed": first.seed,
        "made": (made or made_now()).to_document(),
        "questions": {name: posterior.to_document() for name, posterior in posteriors.items()},
    }
    # R-hat is NaN for a parameter without spread.
    write_document(folder / RESULT, document)
    for name, posterior in posteriors.items():
        (folder / f"{name}.nc").write_bytes(posterior.to_netcdf())


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not isfinite(value) else value
