"""`marginal` as `ldpkit fit` runs it, under its own default priors: what is public is ‖x‖ ≤ R and |y| ≤ T."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Bounds
from inference.design.simulated_posteriors import posterior_draws
from inference.likelihoods.holders.statistics import HolderStatistics
from inference.models.base import Model
from inference.models.holder_regression import holder_regression
from schemas import Question, Study

Matrix = NDArray[np.float64]


def default_draws(every: list[HolderStatistics], bounds: Bounds, draws: int) -> Matrix:
    """θ in own units (runs, draws, d), one chain each; statistics of centred records within the bounds."""
    question = question_of(every[0].features)
    models = [model_of(question, one, bounds) for one in every]
    found = posterior_draws(models, seed=0, draws=draws)
    names = [f"coefficient[{feature.id}]" for feature in question.features]
    return np.stack([found[name] for name in names], axis=-1) * bounds.y / bounds.x


def model_of(question: Question, statistics: HolderStatistics, bounds: Bounds) -> Model:
    """The study's model of statistics in own units, scaled to features within a ball and |y| ≤ 1."""
    unit = np.append(np.full(statistics.features, bounds.x), bounds.y)
    scale = np.outer(unit, unit)
    return holder_regression(
        question, replace(statistics, sums=statistics.sums / scale, noise=statistics.noise / scale)
    )


def question_of(features: int) -> Question:
    """Centred features in a ball of radius 1, a response in −1…1, priors left to their defaults."""
    bounds = ["-1", "1"]
    question = {
        "id": "table",
        "ask": "table",
        "features": [{"id": f"x{index}", "bounds": bounds} for index in range(features)],
        "norm": "1",
        "response": {"id": "y", "bounds": bounds},
        "mechanism": {"name": "table_statistics", "epsilon": "1", "delta": "1e-6", "intercept": False},
        "model": {"name": "linear_regression"},
    }
    document = {
        "format": "ldpkit.study/1",
        "id": "ddplr",
        "version": 1,
        "title": "DDPLR",
        "respondent": "holder",
    }
    return Study({**document, "questions": [question]}).questions[0]
