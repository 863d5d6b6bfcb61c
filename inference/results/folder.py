"""The folder of a fit: posterior.json, draws, plots, report.html; whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from inference.results.page import render_page
from inference.results.plots import Draws, interval_plot, to_png
from inference.results.posterior import RESULT, Posterior, save_posteriors
from schemas import Study
from schemas.errors import InputError

PAGE = "report.html"


def save_report(
    study: Study, posteriors: Mapping[str, Posterior], folder: Path, raw: Mapping[str, Draws] | None = None
) -> None:
    """Write posterior.json, each question's draws (QUESTION.nc) and plot (QUESTION.png), and report.html."""
    save_posteriors(posteriors, folder)
    for name, posterior in posteriors.items():
        to_png(interval_plot(posterior), folder / f"{name}.png")
    (folder / PAGE).write_text(render_page(study, posteriors, raw), encoding="utf-8")


@contextmanager
def whole_folder(target: Path, mark: str = RESULT) -> Iterator[Path]:
    """A temporary folder that becomes `target` only when all was written.

    An older result (a folder that holds `mark`) is replaced; any other folder that is not empty is refused.
    Raises InputError.
    """
    _refuse_foreign(target, mark)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".ldpkit-", dir=target.parent))
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    try:
        temporary.chmod(0o755)
        yield temporary
        _swap(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_foreign(target: Path, mark: str) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target} is not a folder")
    if any(target.iterdir()) and not (target / mark).exists():
        raise InputError(f"{target} is not empty and holds no earlier result: choose another folder")


def _swap(temporary: Path, target: Path) -> None:
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=".ldpkit-old-", dir=target.parent))
        os.replace(target, old / "old")
        os.replace(temporary, target)
        shutil.rmtree(old)
    else:
        os.replace(temporary, target)
