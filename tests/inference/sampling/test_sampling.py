"""Shapes of posteriors, chains and Gaussian approximations, against known laws; compiled programs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.optimize import OptimizeResult, minimize

from inference.compiling import Program, cache_folder, divides
from inference.models import model_for
from inference.models.base import Model
from inference.results.convergence import mixing
from inference.sampling import chains, gaussian_approximation, nuts, whitening
from tests import studies
from tests.kit.reporting import reduced

PRECISION = np.array([[4.0, -3.0, 0.0], [-3.0, 9.0, 1.0], [0.0, 1.0, 400.0]])
MIDDLE = np.array([1.0, -2.0, 30.0])


def test_starts_differ_and_have_finite_density():
    def slope(vector):
        return (np.inf, np.zeros(3)) if np.linalg.norm(vector) > 1 else (0.0, np.zeros(3))

    shape = whitening.Shape(np.zeros(3), 50 * np.eye(3))
    found = chains.starts(whitening.finite(slope), shape, np.random.default_rng(1), 4)
    assert (np.linalg.norm(found, axis=1) <= 1).all()
    assert len(np.unique(found[:, 0])) == 4


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True], ids=["side by side", "in threads"])
def test_chains_draw_from_a_known_law(monkeypatch, alone):
    """A correlated Gaussian vector, a skewed number, and data that move the vector by one."""

    def program(shift):
        numpyro.sample("x", dist.MultivariateNormal(MIDDLE + shift, precision_matrix=PRECISION))
        numpyro.sample("y", dist.Gamma(1.5, 0.1))

    def named(draws):
        return {f"x{i}": draws["x"][..., i] for i in range(3)} | {"y": draws["y"]}

    monkeypatch.setattr(chains, "has_processors", lambda: alone)
    if alone:
        for module in (whitening, nuts):
            monkeypatch.setattr(module, "MOST_DENSE", 1)
    model = Model(program, {"shift": 1.0}, {"x": np.zeros(3), "y": 1.0}, named)
    drawn = nuts.sample(model, seed=3)
    found = model.parameters(drawn.sites)
    ess = mixing(found).ess_bulk
    sds = [*np.sqrt(np.diag(np.linalg.inv(PRECISION))), np.sqrt(150.0)]
    for (name, draws), mean, sd in zip(found.items(), [*(MIDDLE + 1), 15.0], sds, strict=True):
        assert ess[name] > 400
        assert draws.mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(ess[name]))
        assert draws.std() == pytest.approx(sd, rel=0.2)
    assert not drawn.diverging.any()


@pytest.mark.parametrize("lost", [1, whitening.SEARCHES])
def test_lost_search_restarts_at_its_lowest_point(monkeypatch, lost):
    started, top = [], np.array([3.0, -1.0])

    def losing(function, start, **options):
        started.append(start)
        if len(started) > lost:
            return minimize(function, start, **options)
        for part in (1.5, 0.5):
            function(start + part * (top - start) / 2)
        return OptimizeResult(x=np.full(2, np.nan))

    monkeypatch.setattr(whitening, "minimize", losing)
    bowl = lambda vector: (float((vector - top) @ (vector - top)), 2 * (vector - top))  # noqa: E731
    found = whitening.descend(bowl, np.zeros(2))
    assert np.array_equal(started[1], 0.75 * top)
    assert np.allclose(found, top, atol=1e-5 if lost == 1 else 0.01)


@pytest.mark.parametrize(("width", "good"), [(1.0, True), (1.1, True), (2.5, False), (0.05, False)])
def test_weights_detect_a_wrong_width(width, good):
    x = np.random.default_rng(1).normal(size=4000)
    weights = gaussian_approximation.weigh(stats.norm(0, width).logpdf(x) - stats.norm(0, 1).logpdf(x))
    assert weights.good == good
    if good:
        found = x[gaussian_approximation.resample(weights, 3, 4, 4000)]
        assert found.std() == pytest.approx(width, rel=0.06)
        assert len(found) % 4 == 0


def test_weights_are_poor_for_nan_or_infinite_ratios():
    assert not gaussian_approximation.weigh(np.asarray([0.0, np.nan] * 2000)).good
    ratios = np.random.default_rng(1).normal(size=4000) / 10
    ratios[7] = -np.inf
    assert gaussian_approximation.weigh(ratios).good
    assert gaussian_approximation.weigh(ratios).values[7] == 0
    ratios[7] = np.inf
    assert not gaussian_approximation.weigh(ratios).good


@pytest.mark.parametrize("dimension", [1, 40])
def test_proposal_draws_have_their_stated_density(dimension):
    white, log_density = gaussian_approximation.propose(320, dimension, seed=1)
    parts = [
        stats.multivariate_normal(np.zeros(dimension)).logpdf(white),
        stats.multivariate_t(np.zeros(dimension), df=gaussian_approximation.DEGREES_OF_FREEDOM).logpdf(white),
    ]
    exact = np.logaddexp(parts[0] + np.log(2 / 3), parts[1] + np.log(1 / 3))
    assert log_density - dimension / 2 * np.log(2 * np.pi) == pytest.approx(exact)
    # And as many of each.
    if dimension == 1:
        law, _ = gaussian_approximation.propose(40_000, 1, seed=2)
        expected = (
            2 * stats.norm.cdf(-1.7) * 2 + 2 * stats.t(gaussian_approximation.DEGREES_OF_FREEDOM).cdf(-1.7)
        ) / 3
        assert np.mean(np.abs(law) > 1.7) == pytest.approx(expected, abs=0.006)


@pytest.mark.slow
def test_laplace_on_a_long_ridge_is_never_ok():
    """Hours of 0 to 168 with answers near 12: plain Gaussian draws were ok in one seed of four."""
    question = {**studies.AGE, "bounds": ["0", "168"]}
    question = studies.question_of(studies.with_epsilon(question, "1"))
    answers = np.clip(np.random.default_rng(1).normal(12, 5, 5000), 0, 168)
    model = model_for(question, reduced(question, answers))
    assert [seed for seed in (3, 4) if not gaussian_approximation.draw(model, seed).reasons] == []


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "/var/ann"}, Path("/var/ann/ldpkit/jax")),
        ({"HOME": "/home/ann", "XDG_CACHE_HOME": "relative"}, Path("/home/ann/.cache/ldpkit/jax")),
        ({"HOME": "/home/ann", "LDPKIT_CACHE": "off"}, None),
        ({}, None),
    ],
)
def test_cache_folder_follows_the_environment(environment, folder):
    assert cache_folder(environment) == folder


OPERATIONS = {
    "lu": lambda x: jnp.linalg.slogdet(x)[1],
    "cholesky": jnp.linalg.cholesky,
    "eigh": lambda x: jnp.linalg.eigh(x)[0],
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("shape", "alone"), [((200, 200), False), ((250, 2, 16, 16), True)])
def test_batched_matrix_operations_are_detected(name, shape, alone):
    """Also inside a loop; a single matrix is never divided over threads, whatever its size."""
    with jax.enable_x64(True):
        looped = jax.jit(
            lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y + OPERATIONS[name](x + i).sum(), 0.0)
        )
        assert divides(looped.lower(np.ones(shape)).as_text()) is alone


def test_only_batched_programs_run_sequentially(monkeypatch):
    """Chains with few matrices keep running in parallel."""
    asked = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, most):
            asked.append(most)
            super().__init__(most)

    monkeypatch.setattr(chains, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(chains.os, "cpu_count", lambda: 4)
    with jax.enable_x64(True):
        for size in (2, 300):
            program = Program(lambda x: jnp.linalg.slogdet(x)[1].sum())
            chains.in_threads(program)(np.ones((4, size, 16, 16)) + np.eye(16))
    assert asked == [4, 1]
