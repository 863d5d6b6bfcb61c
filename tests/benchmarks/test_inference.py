"""What the speed table compares is the same thing done in two ways."""

import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from benchmarks import compiling
from benchmarks.compiling import timed
from benchmarks.inference_rows.cases import CASES
from benchmarks.ldpbi.literal import normal_log_density, unary_log_density
from inference.design.simulated_posteriors import posterior_draws
from inference.likelihoods import BinnedPerturbed, LaplaceNoise, clipped
from inference.models import model_for
from summaries.reductions.choice import pattern_bits


@pytest.mark.slow
def test_literal_normal_density_matches_histogram():
    edges = np.linspace(0, 1, 2001)
    with jax.enable_x64(True):
        law = BinnedPerturbed(clipped(dist.Normal(0.4, 0.3)), LaplaceNoise(0.5), edges, 1)
        middles = (edges[1:] + edges[:-1]) / 2
        literal = np.exp(normal_log_density(jnp.asarray(middles), 0.4, 0.3, 0.5)) / 2000
        assert literal == pytest.approx(np.asarray(law.cell_probs)[1:-1], rel=1e-6)


def test_literal_unary_density_matches_patterns():
    shares, bits = np.array([0.5, 0.3, 0.2]), pattern_bits(3)
    with jax.enable_x64(True):
        literal = unary_log_density(jnp.asarray(bits), jnp.asarray(shares), 0.5, 0.2)
    ones = np.where(np.eye(3, dtype=bool), 0.5, 0.2)
    given = np.where(bits[:, None] == 1, ones, 1 - ones).prod(axis=-1)
    assert np.asarray(literal) == pytest.approx(np.log(given @ shares), abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_every_case_gives_reports_that_its_study_could_have(name):
    case = CASES[name]
    summary = case.summary(500)
    assert summary.n == 500
    assert model_for(case.question, summary).data
    if case.question.ask != "record":
        assert (summary.values >= 0).all()


@pytest.mark.slow
def test_many_posteriors_match_data():
    """At ε = 1 the truth is told with probability 0.7311: the posterior is near the unbiased estimate."""
    case = CASES["bernoulli"]
    models = [model_for(case.question, case.summary(2000, seed)) for seed in range(3)]
    found = posterior_draws(models, seed=0, draws=400)["p"]
    for model, draws in zip(models, found, strict=True):
        share = (model.data["values"][1] / 2000 - 0.2689) / 0.4621
        assert draws.mean() == pytest.approx(share, abs=0.02)
        assert draws.std() == pytest.approx(np.sqrt(0.2689 * 0.7311 / 2000) / 0.4621, rel=0.5)


def test_time_without_compilation_leaves_compilation_out(monkeypatch):
    """A second passes whenever the clock is read; JAX states how long it compiled."""
    ticks = itertools.count()
    monkeypatch.setattr(compiling, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    result, cost = timed(lambda: jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x))(jnp.ones(7)))
    assert float(result) == pytest.approx(7 * np.sin(1) * np.cos(1), rel=1e-5)
    assert 0 < cost.compiling < cost.seconds == next(ticks) - 1
    assert cost.working == cost.seconds - cost.compiling
