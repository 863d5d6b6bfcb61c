"""Effective draws per second against the per-report models of LDPBI, on the same reports.

The literal model gives the same posterior to the same sampler, so as many effective draws for as many
transitions. It is run for a few hundred transitions of one chain, which time one transition after warm-up;
what 4 × (1000 + 1000) of them would cost is that time multiplied, and their effective draws are ours. The
short run's own effective draws are printed beside, as a check of that assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS, init_to_value

from benchmarks.compiling import timed
from benchmarks.inference_rows.row import Row
from benchmarks.ldpbi.literal import normal_model, unary_model
from benchmarks.ldpbi.surveys import choice_study, number_study
from inference.models import model_for
from inference.results.diagnostics import mixing
from inference.sampling import CHAINS, KEPT, WARMUP, sample
from ldp_client import mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.laplace import Laplace
from schemas import Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

PEOPLE = 100_000
SHORT_WARMUP, SHORT_KEPT = 150, 150
CHOICES = 8


def normal_numbers() -> Iterator[Row]:
    """The normal model of 100,000 numbers at ε = 1."""
    study = number_study("normal", 1.0)
    mechanism = cast(Laplace, mechanism_for(study.questions[0]))
    random = np.random.default_rng(0)
    answers = np.clip(random.normal(0.45, 0.15, PEOPLE), 0, 1)
    reports = np.rint(answers * mechanism.levels + random.laplace(0, mechanism.scale, PEOPLE))
    payloads = reports.astype(">i4").view(np.uint8).reshape(-1, 4)
    program = partial(normal_model, study.questions[0], mechanism.scale / mechanism.levels)
    start = {"mean": 0.45, "sd": 0.15}
    yield _compare("normal, n = 10⁵", study, payloads, program, reports / mechanism.levels, start, 500)


def unary_choices() -> Iterator[Row]:
    """The multinomial model of 100,000 unary-encoded choices of 8 at ε = 1."""
    study = choice_study(CHOICES, 1.0)
    mechanism = cast(ChoiceMechanism, mechanism_for(study.questions[0]))
    p, q = float(mechanism.p), float(mechanism.q)
    random = np.random.default_rng(0)
    true = random.integers(0, CHOICES, PEOPLE)[:, None] == np.arange(CHOICES)
    bits = random.random((PEOPLE, CHOICES)) < np.where(true, p, q)
    payloads = np.packbits(bits, axis=1, bitorder="little")
    program = partial(unary_model, study.questions[0], p, q)
    start = {"p": np.full(CHOICES, 1 / CHOICES)}
    yield _compare("unary encoding k = 8, n = 10⁵", study, payloads, program, bits.astype(float), start, 50)


def _compare(
    what: str,
    study: Study,
    payloads: np.ndarray,
    program: Callable[..., None],
    reports: np.ndarray,
    start: dict[str, Any],
    target: float,
) -> Row:
    question = study.questions[0]
    values = REDUCTIONS[question.mechanism.name].reduce(mechanism_for(question), payloads)
    model = model_for(question, QuestionSummary(PEOPLE, values))
    drawn, cost = timed(lambda: sample(model, seed=1).sites)
    found = mixing(model.parameters(drawn))
    ess = min(found.ess_bulk.values())
    rate = ess / cost.working
    seconds, short_ess = _transition(program, reports, start)
    literal = ess / (CHAINS * (WARMUP + KEPT) * seconds)
    per_draw = ess / (CHAINS * KEPT)
    print(
        f"  literal: {seconds:.3g} s a transition; effective draws per draw {short_ess / SHORT_KEPT:.2f} in "
        f"its short run, {per_draw:.2f} in ours"
    )
    return Row(
        f"effective draws per second: {what}",
        f"{rate:.0f} / {literal:.3g} = {rate / literal:.0f} times",
        f"≥ {target:g} times",
        rate >= target * literal and not found.reasons(),
    )


def _transition(
    program: Callable[..., None], reports: np.ndarray, start: dict[str, Any]
) -> tuple[float, float]:
    """Seconds of one transition after warm-up, and the effective draws of a short run (least parameter)."""
    with jax.enable_x64(True):
        kernel = NUTS(
            program, init_strategy=init_to_value(values=start), target_accept_prob=0.9, dense_mass=True
        )
        mcmc = MCMC(kernel, num_warmup=SHORT_WARMUP, num_samples=SHORT_KEPT, progress_bar=False)
        data = jnp.asarray(reports)
        mcmc.warmup(jax.random.key(0), reports=data)

        def draw() -> dict[str, jax.Array]:
            mcmc.run(jax.random.key(1), reports=data)
            found: dict[str, jax.Array] = mcmc.get_samples(group_by_chain=True)
            return found

        found, cost = timed(draw)
        draws = {name: np.asarray(value) for name, value in found.items()}
    flat = {
        f"{name}{index}": value.reshape(1, SHORT_KEPT, -1)[..., index]
        for name, value in draws.items()
        for index in range(value.reshape(1, SHORT_KEPT, -1).shape[-1])
    }
    return cost.working / SHORT_KEPT, min(mixing(flat).ess_bulk.values())
