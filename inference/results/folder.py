"""The files of a fit: posterior.json, draws, plots and the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from inference.results.intervals import USUAL, Interval
from inference.results.page import report_files
from inference.results.plots import Draws, pictures_of
from inference.results.posterior import Posterior
from inference.results.provenance import Provenance
from inference.results.saving import save_posteriors
from schemas import Study


def save_report(
    study: Study,
    posteriors: Mapping[str, Posterior],
    folder: Path,
    raw: Mapping[str, Draws] | None = None,
    interval: Interval = USUAL,
    made: Provenance | None = None,
) -> None:
    """Write posterior.json, the report (HTML, CSV), and each question's draws and pictures.

    QUESTION.nc has its draws, QUESTION.png its intervals, QUESTION-chains.png its traces and ranks.
    """
    save_posteriors(posteriors, folder, made)
    known = raw or {}
    pictures = {name: pictures_of(found, known.get(name), interval) for name, found in posteriors.items()}
    # Written first: a question named "x-chains" then overwrites the chains of x with its own picture.
    for name, drawn in pictures.items():
        (folder / f"{name}-chains.png").write_bytes(drawn.chains_png)
    for name, drawn in pictures.items():
        (folder / f"{name}.png").write_bytes(drawn.intervals_png)
    for name, text in report_files(study, posteriors, raw, pictures, interval, made).items():
        (folder / name).write_text(text, encoding="utf-8")
