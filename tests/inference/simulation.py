"""Simulated studies: true parameters, answers, real device noise, posterior; many of them at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.util import log_density

from inference.design import simulated_posteriors as posteriors
from inference.models.base import Model
from schemas import Study
from summaries import QuestionSummary, Summary, summarize
from tests.kit.reporting import reports_of

Answers = list[Any]
DRAWS = 400


def collected(study: Study, answers: Answers) -> Summary:
    """The summary of one report for each answer to the study's only question."""
    return summarize(study, reports_of(study, answers))


def simulated_summaries(
    study: Study, draw: Callable[[np.random.Generator], Answers], studies: int
) -> list[QuestionSummary]:
    """The summary of each of many simulated studies of the same question and size."""
    generators = np.random.default_rng(20261120).spawn(studies)
    name = study.questions[0].id
    return [collected(study, draw(generator)).questions[name] for generator in generators]


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


def times_covered_on_grid(
    models: list[Model], grid: dict[str, np.ndarray], truth: dict[str, float]
) -> dict[str, int]:
    """The same from exact posteriors: the models' densities at the points {site: (points, …)} of a grid.

    The points must lie evenly in the sites' own space, and hold nearly all of every posterior.
    """
    with jax.enable_x64(True):
        points = {name: jnp.asarray(values) for name, values in grid.items()}
        data = {name: jnp.stack([jnp.asarray(m.data[name]) for m in models]) for name in models[0].data}
        # What does not depend on the data is computed once for all studies.
        density = lambda one, at: log_density(models[0].program, (), one, at)[0]  # noqa: E731
        many = jax.jit(jax.vmap(jax.vmap(density, (0, None)), (None, 0), out_axes=1))
        logs = np.asarray(many(data, points))
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    values = models[0].parameters(grid)
    covered = {}
    for name, value in truth.items():
        below = weights @ (values[name] < value) + weights @ (values[name] == value) / 2
        covered[name] = int(np.sum(np.abs(below - 0.5) <= 0.45))
    return covered


def box(points: int, **ends: tuple[float, float]) -> dict[str, np.ndarray]:
    """A grid of so many points along each site, {site: (all points,)}."""
    axes = np.meshgrid(*[np.linspace(*end, points) for end in ends.values()])
    return {name: axis.ravel() for name, axis in zip(ends, axes, strict=True)}


def triangle(points: int) -> dict[str, np.ndarray]:
    """An even grid inside the simplex of three shares, {"p": (all points, 3)}, under a uniform prior."""
    first, second = (part.ravel() for part in np.meshgrid(*[(np.arange(points) + 0.5) / points] * 2))
    inside = first + second < 1 - 0.25 / points
    return at_shares(np.stack([first, second, 1 - first - second], axis=1)[inside])


def at_shares(shares: np.ndarray) -> dict[str, np.ndarray]:
    """Sites that put shares (…, k) into a model's likelihood, at one value of their prior."""
    return {"p": shares, "p_sticks": np.zeros((*shares.shape[:-1], shares.shape[-1] - 1))}
