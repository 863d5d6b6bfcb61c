"""The folder of a fit: posterior.json, draws, plots, report.html; whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from inference.results.page import render_page
from inference.results.pictures import pictures_of
from inference.results.plots import Draws
from inference.results.posterior import RESULT, Posterior, save_posteriors
from ldp_client.documents.errors import InputError
from schemas import Study

PAGE = "report.html"
OWN_FILES = (RESULT, PAGE, "*.nc", "*.png")


def save_report(
    study: Study, posteriors: Mapping[str, Posterior], folder: Path, raw: Mapping[str, Draws] | None = None
) -> None:
    """Write posterior.json, report.html, and of each question draws (QUESTION.nc) and two pictures.

    QUESTION.png has its intervals, QUESTION-chains.png its traces and ranks.
    """
    save_posteriors(posteriors, folder)
    pictures = {name: pictures_of(found, (raw or {}).get(name)) for name, found in posteriors.items()}
    # First, so that a question named like another one's chains still has its own picture.
    for name, drawn in pictures.items():
        (folder / f"{name}-chains.png").write_bytes(drawn.chains_png)
    for name, drawn in pictures.items():
        (folder / f"{name}.png").write_bytes(drawn.intervals_png)
    (folder / PAGE).write_text(render_page(study, posteriors, raw, pictures), encoding="utf-8")


@contextmanager
def whole_folder(target: Path, own: tuple[str, ...] = OWN_FILES) -> Iterator[Path]:
    """A temporary folder that becomes `target` only when all was written.

    An older result is replaced: a folder with nothing but files that match `own`. Any other folder is
    refused, so that no one's reports or notes are lost. Raises InputError, also when the disk is full.
    """
    target = target.resolve()
    temporary = None
    try:
        _refuse_foreign(target, own)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".ldpkit-", dir=target.parent))
        temporary.chmod(0o755)
        yield temporary
        _swap(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _refuse_foreign(target: Path, own: tuple[str, ...]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target} is not a folder")
    if Path.cwd().is_relative_to(target):
        raise InputError(f"{target} is the folder you are in: choose another")
    foreign = [path.name for path in target.iterdir() if not any(path.match(name) for name in own)]
    if foreign:
        raise InputError(
            f"{target} holds {foreign[0]}, which is no result of this command: choose another folder"
        )


def _swap(temporary: Path, target: Path) -> None:
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=".ldpkit-old-", dir=target.parent))
        os.replace(target, old / "old")
        os.replace(temporary, target)
        shutil.rmtree(old)
    else:
        os.replace(temporary, target)
