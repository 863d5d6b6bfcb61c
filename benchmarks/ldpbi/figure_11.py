"""Figure 11: calibration of the exponential model against ε."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from benchmarks.ldpbi import calibration
from benchmarks.ldpbi.surveys import number_study, number_summary
from benchmarks.sizes import Size
from inference.models.base import Draws
from schemas import Question
from summaries import QuestionSummary


def _collect(question: Question, truth: Draws, people: int, random: Generator) -> QuestionSummary:
    return number_summary(question, random.exponential(1 / truth["rate"], people), random)


def run(out: Path, size: Size) -> None:
    """Print and draw it."""
    experiment = calibration.Experiment(
        title="Figure 11: calibration, exponential model, Laplace noise",
        file="figure_11",
        claim="well calibrated, as in Figure 1 (supplement)",
        study=lambda epsilon: number_study("exponential", epsilon),
        collect=_collect,
        shown=("rate",),
    )
    calibration.run(experiment, out, size)
