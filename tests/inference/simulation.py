"""Simulated studies: true parameters, answers, real device noise, posterior; many of them at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import NUTS, init_to_value
from numpyro.infer.hmc import HMCState

from inference.models import model_for
from inference.models.base import Model
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from schemas import Study
from summaries import Summary, summarize

Answers = list[Any]
WARMUP, DRAWS = 250, 400


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
    """Draws of each model's parameters: one program, compiled once, all data sets side by side."""
    with jax.enable_x64(True):
        names = models[0].data
        stacked = {name: jnp.stack([jnp.asarray(model.data[name]) for model in models]) for name in names}
        keys = jax.random.split(jax.random.PRNGKey(0), len(models))
        sites = jax.jit(jax.vmap(partial(_chain, models[0])))(keys, stacked)
        sites = {name: np.asarray(value) for name, value in sites.items()}
    jax.clear_caches()
    return [
        models[0].parameters({name: value[i] for name, value in sites.items()}) for i in range(len(models))
    ]


def _chain(model: Model, key: jax.Array, data: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """One NUTS chain; written as a pure function so that it can be vectorised over data sets."""
    start = init_to_value(values={name: jnp.asarray(value) for name, value in model.initial.items()})
    kernel = NUTS(model.program, init_strategy=start, dense_mass=True, max_tree_depth=6)
    state = kernel.init(key, WARMUP, None, (), data)

    def step(state: HMCState, _: None) -> tuple[HMCState, dict[str, jax.Array]]:
        state = kernel.sample(state, (), data)
        return state, state.z

    state, _ = jax.lax.scan(lambda state, _: (step(state, _)[0], None), state, length=WARMUP)
    _, draws = jax.lax.scan(step, state, length=DRAWS)
    return jax.vmap(kernel.postprocess_fn((), data))(draws)


def times_covered(found: list[dict[str, np.ndarray]], truth: dict[str, float]) -> dict[str, int]:
    """For each parameter, in how many studies the 90 % interval contains the truth."""
    covered = {}
    for name, value in truth.items():
        inside = [np.quantile(d[name], 0.05) <= value <= np.quantile(d[name], 0.95) for d in found]
        covered[name] = int(np.sum(inside))
    return covered
