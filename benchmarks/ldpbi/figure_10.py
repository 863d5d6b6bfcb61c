"""Figure 10: calibration of the histogram model against ε."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from benchmarks.ldpbi import calibration
from benchmarks.ldpbi.surveys import choice_study, choice_summary
from benchmarks.sizes import Size
from inference.models.base import Draws
from schemas import Question
from summaries import QuestionSummary

CHOICES = 3


def _collect(question: Question, truth: Draws, people: int, random: Generator) -> QuestionSummary:
    shares = truth["p"] / truth["p"].sum()
    return choice_summary(question, random.multinomial(people, shares), random)


def run(out: Path, size: Size) -> None:
    """Print and draw it."""
    experiment = calibration.Experiment(
        title=f"Figure 10: calibration, histogram of {CHOICES} choices, unary encoding",
        file="figure_10",
        claim="well calibrated, as in Figure 1 (supplement)",
        study=lambda epsilon: choice_study(CHOICES, epsilon),
        collect=_collect,
        shown=[f"p[{choice}]" for choice in range(CHOICES)],
    )
    calibration.run(experiment, out, size)
