"""Effective draws per second against the per-report normal model of LDPBI, on the same reports.

The literal model has one term for each report, and the same posterior as ours: the same sampler needs as many
gradients of it for an effective draw. Those are counted in one chain (1000 + 1000) of our model under
NumPyro's NUTS. A short run of the literal model times one gradient. The product is the literal model's rate.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from jax.scipy.stats import norm
from numpyro.infer import MCMC, NUTS, init_to_value

from benchmarks.inference_rows.fits import timed
from benchmarks.ldpbi.surveys import number_study
from benchmarks.running import Row, Size
from inference.models import model_for
from inference.models.base import TARGET_ACCEPTANCE, Model
from inference.models.family import draw
from inference.results.convergence import mixing
from inference.samplers import KEPT
from inference.sampling import nuts
from inference.sampling.nuts import sample
from inference.units import number_units
from ldp_client import mechanism_for
from ldp_client.mechanisms.number import Laplace
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

PEOPLE, SHORT = 100_000, 30
# Of NumPyro's own sampler, which begins without knowing the posterior's shape.
WARMUP = 1000
TIMES = 500


class Chain(NamedTuple):
    """draws: {site: (1, kept, …)}. gradients: how many. seconds: without compilation."""

    draws: Mapping[str, np.ndarray]
    gradients: int
    seconds: float


def normal_log_density(z: Array, mean: Array, sd: Array, scale: float) -> Array:
    """LDPBI 10.1: log density of reports of Normal(mean, sd) clipped to [0, 1] plus Laplace noise.

    As printed (METHODS 2.1): differences of Φ lose their digits where a tail meets a large exponential.
    """
    middle, ratio = jnp.clip(z, 0, 1), sd / scale
    at_0 = norm.cdf(-mean / sd) * jnp.exp(-jnp.abs(z) / scale)
    at_1 = norm.cdf((mean - 1) / sd) * jnp.exp(-jnp.abs(z - 1) / scale)
    below = norm.cdf((middle - mean) / sd - ratio) - norm.cdf(-mean / sd - ratio)
    above = norm.cdf((1 - mean) / sd + ratio) - norm.cdf((middle - mean) / sd + ratio)
    below, above = (
        part * jnp.exp(sign * (mean - z) / scale + ratio**2 / 2) for sign, part in ((1, below), (-1, above))
    )
    return jnp.log((at_0 + at_1 + below + above) / (2 * scale))


def literal_model(question: Question, scale: float, reports: Array) -> None:
    """Reports (n,) in scaled units: bounds 0 and 1. The priors are ours."""
    low, width = number_units(question)
    mean, sd = draw(question, "mean", low, width), draw(question, "sd", 0.0, width)
    numpyro.factor("reports", normal_log_density(reports, mean, sd, scale).sum())


def normal_numbers(size: Size) -> Iterator[Row]:
    """The normal model of 100,000 numbers at ε = 1."""
    question = number_study("normal", 1.0).questions[0]
    mechanism, people = cast(Laplace, mechanism_for(question)), size.of(PEOPLE, PEOPLE, 200)
    random = np.random.default_rng(0)
    answers = np.clip(random.normal(0.45, 0.15, people), 0, 1)
    reports = np.rint(answers * mechanism.levels + random.laplace(0, mechanism.scale, people))
    payloads = reports.astype(">i4").view(np.uint8).reshape(-1, 4)
    values = REDUCTIONS[question.mechanism.name].reduce(mechanism, payloads)
    model = model_for(question, QuestionSummary(people, values))
    # 1. Our rate, of the worst parameter.
    warmup, kept = size.of((nuts.WARMUP, KEPT), (nuts.WARMUP, KEPT), ((100,), 100))
    drawn, cost = timed(lambda: sample(model, 1, warmup, kept).sites)
    found = mixing(model.parameters(drawn))
    rate, is_mixed = min(found.ess_bulk.values()) / cost.working, not list(found.findings(found.r_hat))
    # 2. Gradients for an effective draw, and what one gradient of the literal model takes.
    lengths, steps = size.of((WARMUP, KEPT), (WARMUP, KEPT), (20, 20)), size.of(SHORT, SHORT, 2)
    counted = _chain(model.program, model.data, model, *lengths)
    literal = partial(literal_model, question, mechanism.scale / mechanism.levels)
    short = _chain(literal, {"reports": reports / mechanism.levels}, model, steps, steps)
    effective = min(mixing(model.parameters(counted.draws)).ess_bulk.values())
    literal_rate = effective / counted.gradients * short.gradients / short.seconds
    measured = f"{rate:.0f} / {literal_rate:.3g} = {rate / literal_rate:.0f} times"
    met = is_mixed and rate >= TIMES * literal_rate
    yield Row(f"effective draws per second: normal, n = {people:,}", measured, f"≥ {TIMES} times", met)


def _chain(
    program: Callable[..., None], data: Mapping[str, Any], model: Model, warmup: int, kept: int
) -> Chain:
    """One chain of NumPyro's own NUTS, warm-up counted and timed."""
    with jax.enable_x64(True):
        start = init_to_value(values=dict(model.initial))
        kernel = NUTS(program, init_strategy=start, target_accept_prob=TARGET_ACCEPTANCE, dense_mass=True)
        mcmc = MCMC(kernel, num_warmup=warmup, num_samples=kept, progress_bar=False)
        options = {"extra_fields": ("num_steps",), **data}
        warm = timed(lambda: _steps(mcmc.warmup, mcmc, collect_warmup=True, **options))
        main = timed(lambda: _steps(mcmc.run, mcmc, **options))
        draws = {site: np.asarray(x) for site, x in mcmc.get_samples(group_by_chain=True).items()}
    return Chain(draws, warm[0] + main[0], warm[1].working + main[1].working)


def _steps(advance: Callable[..., None], mcmc: MCMC, **options: Any) -> int:
    """Let the chain advance, and count its gradients."""
    advance(jax.random.key(0), **options)
    return int(np.asarray(mcmc.get_extra_fields()["num_steps"]).sum())
