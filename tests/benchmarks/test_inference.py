"""The speed table fits reports that could be, and leaves compilation out."""

import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from benchmarks.inference_rows import fits
from benchmarks.inference_rows.cases import CASES
from benchmarks.inference_rows.literal import normal_log_density
from inference.likelihoods import BinnedPerturbed, LaplaceNoise, clipped
from inference.models import model_for


def test_literal_density_matches_histogram():
    edges = np.linspace(0, 1, 2001)
    with jax.enable_x64(True):
        law = BinnedPerturbed(clipped(dist.Normal(0.4, 0.3)), LaplaceNoise(0.5), edges, 1)
        middles = (edges[1:] + edges[:-1]) / 2
        literal = np.exp(normal_log_density(jnp.asarray(middles), 0.4, 0.3, 0.5)) / 2000
        assert literal == pytest.approx(np.asarray(law.cell_probs)[1:-1], rel=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_every_case_gives_reports_that_its_study_could_have(name):
    case = CASES[name]
    summary = case.summary(500)
    assert summary.n == 500
    assert model_for(case.question, summary).data
    if case.question.ask != "record":
        assert (summary.values >= 0).all()


def test_time_without_compilation_leaves_compilation_out(monkeypatch):
    """A second passes whenever the clock is read; JAX states how long it compiled."""
    ticks = itertools.count()
    monkeypatch.setattr(fits, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    result, cost = fits.timed(lambda: jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x))(jnp.ones(7)))
    assert float(result) == pytest.approx(7 * np.sin(1) * np.cos(1), rel=1e-5)
    assert 0 < cost.compiling < cost.seconds == next(ticks) - 1
    assert cost.working == cost.seconds - cost.compiling
