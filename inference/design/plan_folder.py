"""The folder of a plan: plan.json and a picture for each question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from inference.design.plan import Plan
from inference.design.plan_plots import plan_plot
from inference.results.folder import OwnFiles
from inference.results.plots import to_png
from schemas import Study

RESULT = "plan.json"
OWN_FILES = OwnFiles(RESULT, ("{}.png",))


def save_plans(study: Study, plans: Sequence[Plan], folder: Path, width: float | None = None) -> None:
    """Write plan.json and QUESTION.png."""
    document = {
        "study": study.digest,
        "seed": plans[0].seed,
        "questions": {found.question: found.to_document() for found in plans},
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    for found in plans:
        (folder / f"{found.question}.png").write_bytes(to_png(plan_plot(found, width)))
