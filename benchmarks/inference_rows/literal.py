"""Effective draws per second against the per-report models of LDPBI, on the same reports.

The literal model has the same posterior as ours, so the same sampler needs as many gradients of it for an
effective draw. Those are counted in one chain (1000 + 1000) of our model under NumPyro's NUTS; a short run of
the literal model under the same settings times one gradient. Their product is the literal model's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import numpy as np
from numpyro.infer import MCMC, NUTS, init_to_value

from benchmarks.compiling import timed
from benchmarks.ldpbi.literal import normal_model, unary_model
from benchmarks.ldpbi.surveys import choice_study, number_study
from benchmarks.running import Row, Size
from inference.models import model_for
from inference.models.base import TARGET_ACCEPTANCE, Model
from inference.results.convergence import mixing
from inference.sampling import KEPT, nuts, sample
from ldp_client import mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.number import Laplace
from schemas import Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

PEOPLE = 100_000
SHORT = 30
# Of NumPyro's own sampler, which begins without knowing the posterior's shape.
WARMUP = 1000
CHOICES = 8


class Chain(NamedTuple):
    """draws: {site: (1, kept, …)}. gradients: how many. seconds: without compilation."""

    draws: Mapping[str, np.ndarray]
    gradients: int
    seconds: float


def normal_numbers(size: Size) -> Iterator[Row]:
    """The normal model of 100,000 numbers at ε = 1."""
    study = number_study("normal", 1.0)
    mechanism = cast(Laplace, mechanism_for(study.questions[0]))
    random = np.random.default_rng(0)
    people = _people(size)
    answers = np.clip(random.normal(0.45, 0.15, people), 0, 1)
    reports = np.rint(answers * mechanism.levels + random.laplace(0, mechanism.scale, people))
    payloads = reports.astype(">i4").view(np.uint8).reshape(-1, 4)
    program = partial(normal_model, study.questions[0], mechanism.scale / mechanism.levels)
    yield _compare(f"normal, n = {people:,}", study, payloads, program, reports / mechanism.levels, 500, size)


def unary_choices(size: Size) -> Iterator[Row]:
    """The multinomial model of 100,000 unary-encoded choices of 8 at ε = 1."""
    study = choice_study(CHOICES, 1.0)
    mechanism = cast(ChoiceMechanism, mechanism_for(study.questions[0]))
    p, q = float(mechanism.p), float(mechanism.q)
    random, people = np.random.default_rng(0), _people(size)
    true = random.integers(0, CHOICES, people)[:, None] == np.arange(CHOICES)
    bits = random.random((people, CHOICES)) < np.where(true, p, q)
    payloads = np.packbits(bits, axis=1, bitorder="little")
    program = partial(unary_model, study.questions[0], p, q)
    what = f"unary encoding k = {CHOICES}, n = {people:,}"
    yield _compare(what, study, payloads, program, bits.astype(float), 50, size)


def _compare(
    what: str,
    study: Study,
    payloads: np.ndarray,
    literal: Callable[..., None],
    reports: np.ndarray,
    target: float,
    size: Size,
) -> Row:
    question = study.questions[0]
    values = REDUCTIONS[question.mechanism.name].reduce(mechanism_for(question), payloads)
    model = model_for(question, QuestionSummary(len(payloads), values))
    rate, good = _our_rate(model, size)
    lengths, steps = size.of((WARMUP, KEPT), (WARMUP, KEPT), (20, 20)), size.of(SHORT, SHORT, 2)
    counted = _chain(model.program, model.data, model.initial, *lengths)
    short = _chain(literal, {"reports": reports}, model.initial, steps, steps)
    effective = min(mixing(model.parameters(counted.draws)).ess_bulk.values())
    a_gradient = short.seconds / short.gradients
    literal_rate = effective / (counted.gradients * a_gradient)
    print(
        f"  literal: {a_gradient:.3g} s a gradient ({short.gradients} timed); {counted.gradients} for "
        f"{effective:.0f} effective draws; ours as counted: {counted.seconds / counted.gradients:.3g} s"
    )
    measured = f"{rate:.0f} / {literal_rate:.3g} = {rate / literal_rate:.0f} times"
    met = good and rate >= target * literal_rate
    return Row(f"effective draws per second: {what}", measured, f"≥ {target:g} times", met)


def _people(size: Size) -> int:
    return size.of(PEOPLE, PEOPLE, 200)


def _our_rate(model: Model, size: Size) -> tuple[float, bool]:
    """Effective draws of the worst parameter per second without compilation; whether the chains mixed."""
    warmup, kept = size.of((nuts.WARMUP, KEPT), (nuts.WARMUP, KEPT), ((100,), 100))
    drawn, cost = timed(lambda: sample(model, 1, warmup, kept).sites)
    found = mixing(model.parameters(drawn))
    return min(found.ess_bulk.values()) / cost.working, not list(found.findings(found.r_hat))


def _chain(
    program: Callable[..., None],
    data: Mapping[str, Any],
    start: Mapping[str, Any],
    warmup: int,
    kept: int,
) -> Chain:
    """One chain of NumPyro's own NUTS, warm-up counted and timed."""
    with jax.enable_x64(True):
        kernel = NUTS(
            program,
            init_strategy=init_to_value(values=dict(start)),
            target_accept_prob=TARGET_ACCEPTANCE,
            dense_mass=True,
        )
        mcmc = MCMC(kernel, num_warmup=warmup, num_samples=kept, progress_bar=False)
        options = {"extra_fields": ("num_steps",), **data}
        warm = timed(lambda: _steps(mcmc.warmup, mcmc, collect_warmup=True, **options))
        main = timed(lambda: _steps(mcmc.run, mcmc, **options))
        draws = {site: np.asarray(x) for site, x in mcmc.get_samples(group_by_chain=True).items()}
    return Chain(draws, int(warm[0] + main[0]), warm[1].working + main[1].working)


def _steps(go: Callable[..., None], mcmc: MCMC, **options: Any) -> np.int64:
    """Let the chain go, and count its gradients."""
    go(jax.random.key(0), **options)
    return np.asarray(mcmc.get_extra_fields()["num_steps"]).sum()
