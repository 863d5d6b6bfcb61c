"""Simulated studies: true parameters, answers, real device noise, posterior; many of them at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inference.models import model_for
from inference.models.base import Model
from inference.simulated import posteriors
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from schemas import Study
from summaries import Summary, summarize

Answers = list[Any]
DRAWS = 400


def collected(study: Study, answers: Answers) -> Summary:
    """The summary of one report for each answer to the study's only question."""
    question = study.questions[0]
    mechanisms = {question.id: mechanism_for(question)}
    return summarize(study, [perturb_answers(study, mechanisms, {question.id: a}) for a in answers])


def simulated_models(
    study: Study, draw: Callable[[np.random.Generator], Answers], studies: int
) -> list[Model]:
    """One model for each of many simulated studies of the same question and size."""
    question = study.questions[0]
    generators = np.random.default_rng(20261120).spawn(studies)
    summaries = [collected(study, draw(generator)) for generator in generators]
    return [model_for(question, summary.questions[question.id]) for summary in summaries]


def posterior_draws(models: list[Model]) -> list[dict[str, np.ndarray]]:
    """Draws of each model's parameters, by the sampler of `ldpkit calibrate`."""
    found = posteriors.posterior_draws(models, seed=0, draws=DRAWS)
    return [{name: draws[i] for name, draws in found.items()} for i in range(len(models))]


def times_covered(found: list[dict[str, np.ndarray]], truth: dict[str, float]) -> dict[str, int]:
    """For each parameter, in how many studies the 90 % interval contains the truth."""
    covered = {}
    for name, value in truth.items():
        inside = [np.quantile(d[name], 0.05) <= value <= np.quantile(d[name], 0.95) for d in found]
        covered[name] = int(np.sum(inside))
    return covered
