"""The folder of a calibration: calibration.json and a rank plot for each question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from inference.design.calibration import Calibration
from inference.design.calibration_plots import rank_plot
from inference.results.folder import OwnFiles
from inference.results.plots import to_png
from schemas import Study

RESULT = "calibration.json"
OWN_FILES = OwnFiles(RESULT, ("{}.png",))


def save_calibrations(study: Study, found: Sequence[Calibration], folder: Path) -> None:
    """Write calibration.json and QUESTION.png."""
    document = {
        "study": study.digest,
        "seed": found[0].seed,
        "questions": {one.question: one.to_document() for one in found},
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    for one in found:
        (folder / f"{one.question}.png").write_bytes(to_png(rank_plot(one)))
