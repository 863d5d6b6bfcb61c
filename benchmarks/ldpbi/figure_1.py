"""Figure 1: calibration of the normal model against ε."""

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
    return number_summary(question, random.normal(truth["mean"], truth["sd"], people), random)


def run(out: Path, size: Size) -> None:
    """Print and draw it."""
    experiment = calibration.Experiment(
        title="Figure 1: calibration, normal model, Laplace noise",
        file="figure_1",
        claim="well calibrated even for the most strict privacy constraints",
        study=lambda epsilon: number_study("normal", epsilon),
        collect=_collect,
        shown=("mean", "sd"),
    )
    calibration.run(experiment, out, size)
