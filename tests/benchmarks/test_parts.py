"""What benchmarks rest on: simulated reports, published and right noise, baselines, and how time is taken."""

import itertools
from dataclasses import replace
from math import sqrt
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from benchmarks import analyses
from benchmarks.baselines import ldp_sgd
from benchmarks.baselines.simplex import PROJECTIONS, norm_sub
from benchmarks.dca.noise import SHARE, Budget, scale, squares_sensitivity, sums_sensitivity
from benchmarks.ddplr import constants
from benchmarks.ddplr.releases import Setting, Table, paper_prior, releases
from benchmarks.dpblr import worlds
from benchmarks.inference_rows import fits
from benchmarks.inference_rows.cases import CASES
from benchmarks.inference_rows.literal import normal_log_density
from benchmarks.ldpbi import figure_3, surveys
from inference.likelihoods import BinnedPerturbed, LaplaceNoise, clipped
from inference.models import model_for
from ldp_client import mechanism_for
from ldp_client.documents.rational import Rational
from summaries.reductions.choice import pattern_bits
from tests.statistics import share_is

RANDOM = np.random.default_rng(20261123)
STUDIES = 40


def covered(simulated):
    rows = analyses.measured(simulated, seed=2, draws=99)
    return [share_is(round(row.coverage * STUDIES), STUDIES, 0.9) for row in rows.values()]


@pytest.mark.slow
def test_intervals_of_analyses_contain_the_truth_unless_the_channel_is_another():
    simulated = analyses.CASES["outcome-10000"](STUDIES, np.random.default_rng(3))
    assert all(covered(simulated))
    # As if the reports were the answers: no analysis could be calibrated.
    bare = [
        replace(one, data={**one.data, "leaves_0": np.round(one.data["leaves_0"])})
        for one in simulated.models
    ]
    assert not all(covered(replace(simulated, models=bare)))


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections_sum_to_one_and_leave_the_simplex_alone(name):
    project, true = PROJECTIONS[name], np.array([0.6, 0.3, 0.1])
    estimates = np.random.default_rng(1).normal(0.2, 0.4, (200, 5))
    found = project(estimates)
    assert found.sum(-1) == pytest.approx(1)
    assert project(true) == pytest.approx(true)
    assert name == "norm" or (found >= 0).all()
    if project is norm_sub:
        # All positive shares are shifted equally: only the projection does so (Duchi et al. 2008).
        taken = estimates - found
        shift = np.max(np.where(found > 0, taken, -np.inf), -1, keepdims=True)
        assert np.allclose(np.where(found > 0, taken - shift, 0), 0)
        assert (np.where(found == 0, estimates - shift, 0) <= 1e-12).all()


@pytest.mark.parametrize(
    ("loss", "gradient"),
    [
        (lambda theta, x, y: (x @ theta - y) ** 2 / 2, ldp_sgd.squared_loss_gradient),
        (lambda theta, x, y: jnp.logaddexp(0.0, -y * (x @ theta)), ldp_sgd.logistic_loss_gradient),
    ],
    ids=["squared", "logistic"],
)
def test_gradients_of_ldp_sgd_match_autodiff(loss, gradient):
    random, theta = np.random.default_rng(1), np.array([0.4, -0.3])
    x, y = random.uniform(-0.7, 0.7, (50, 2)), random.choice([-1.0, 1.0], 50)
    with jax.enable_x64(True):
        expected = jax.vmap(jax.grad(loss), (None, 0, 0))(theta, x, y)
    assert gradient(theta, x, y) == pytest.approx(np.asarray(expected), abs=1e-12)


def test_noise_of_ldp_sgd_is_calibrated_to_opposite_gradients():
    """METHODS 1.5: σ/Δ = 3.7306 at ε = 1, δ = 1e-5; Δ = 2."""
    found = ldp_sgd.gradient_noise_sd(Rational.parse("1"), Rational.parse("1e-5"), 10)
    assert found == pytest.approx(2 * 3.7306, rel=1e-4)
    with pytest.raises(ValueError, match="too small"):
        ldp_sgd.gradient_noise_sd(Rational.parse("1e-9"), Rational.parse("1e-30"), 10)


GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "methods" / "dca.npz")


@pytest.mark.parametrize("data", ["red_wine", "abalone"])
def test_published_noise_of_dca_is_the_authors(data):
    """It lacks a factor of the bound: the squares' sensitivity is that of 7.5, not of its square."""

    def golden(name):
        return float(GOLDEN[f"{data}__{name}"])

    bounds, clients = GOLDEN[f"{data}__thresholds"], golden("clients")
    budget = Budget(golden("eps"), golden("delta"))
    total = scale(budget.part(1 - SHARE), "published") * sums_sensitivity(bounds, "published")
    unit = scale(budget.part(SHARE), "published")
    for sd, name in (
        (total, "sigma_per_client__cl_noisy_ind"),
        (unit * squares_sensitivity(len(bounds), "published"), "sigma_per_client_var_released"),
        (
            unit * squares_sensitivity(len(bounds), "right"),
            "sigma_per_client_var_with_sensitivity_of_squares",
        ),
    ):
        assert sd / np.sqrt(clients - 1) == pytest.approx(golden(name), rel=1e-6)


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
def test_right_sensitivity_of_dca_bounds_distance_of_records(columns):
    random = np.random.default_rng(columns)
    bounds = random.uniform(0.3, 2.0, columns)
    released = np.triu(np.ones((columns, columns))) > 0
    released[-1, -1] = False
    corners = random.choice([-1.0, 0.0, 1.0], (2, 20_000, columns)) * bounds
    inner = random.uniform(-1.0, 1.0, (2, 20_000, columns)) * bounds
    worst = 0.0
    for one, other in (corners, inner):
        apart = np.einsum("ni,nj->nij", one, one) - np.einsum("ni,nj->nij", other, other)
        worst = max(worst, float(np.sqrt((apart[:, released] ** 2).sum(axis=1)).max()))
    right = sums_sensitivity(bounds, "right")
    assert 0.8 * right < worst <= right * (1 + 1e-12)
    assert right <= sums_sensitivity(bounds, "published")


def test_equal_bounds_reach_right_sensitivity_of_dca():
    # METHODS 1.4: 4, 16, 36 for d = 1, 3, 5; eq. 18 has 5, 27, 65.
    for features, right, published in ((1, 4, 5), (3, 16, 27), (5, 36, 65)):
        bounds = np.ones(features + 1)
        assert sums_sensitivity(bounds, "right") ** 2 == pytest.approx(right)
        assert sums_sensitivity(bounds, "published") ** 2 == pytest.approx(published)


@pytest.mark.parametrize(
    ("epsilon", "published", "right"),
    [(0.1, 5.04, 24.51), (0.5, 2.15, 5.89), (1, 1.49, 3.19), (2, 1.03, 1.73)],
)
def test_noise_of_the_analytic_gaussian_mechanism_as_ddplr_has_it(epsilon, published, right):
    assert constants.published_sigma(epsilon, 1e-4) == pytest.approx(published, abs=0.006)
    assert constants.right_sigma(epsilon, 1e-4) == pytest.approx(right, abs=0.006)


def extreme_records(bounds, many):
    """(many, 3): x of the largest norm, y at its bound or anywhere."""
    x = RANDOM.normal(size=(many, 2))
    x *= bounds.x / np.linalg.norm(x, axis=1, keepdims=True) * RANDOM.choice([1, 1, 0], (many, 1))
    return np.column_stack([x, bounds.y * RANDOM.choice([-1.0, -0.5, 0.3, 1.0], many)])


@pytest.mark.parametrize("bounds", [constants.Bounds(1, 1), constants.Bounds(1, 2), constants.Bounds(2, 0.5)])
def test_right_noise_of_ddplr_covers_every_exchange_of_records_and_published_does_not(bounds):
    first, second = extreme_records(bounds, 20_000), extreme_records(bounds, 20_000)
    apart = first[:, :, None] * first[:, None] - second[:, :, None] * second[:, None]
    upper, budget = np.triu(np.ones((3, 3))), (1.0, 1e-4)

    def worst(noise_of, kind):
        distances = upper * (apart / noise_of(bounds, 2, budget, kind)) ** 2
        return np.sqrt(distances.sum((1, 2)).max()) * constants.right_sigma(*budget)

    for noise_of in (constants.cross_noise, constants.squares_noise, constants.svec_noise):
        assert 0.9 < worst(noise_of, "right") <= 1 + 1e-9
    assert worst(constants.cross_noise, "published") > 2


def test_releases_of_ddplr_hold_all_records_and_the_stated_noise():
    random = np.random.default_rng(1)
    table = Table(random.normal(size=(600, 2)), random.normal(size=600))
    every = releases(Setting(table, 3, 1.0, "right", paper_prior(np.eye(2)), runs=400), constants.svec_noise)
    truth = table.x.T @ table.x
    found = np.stack([one.sums.sum(0)[:2, :2] for one in every])
    sd = sqrt(3) * every[0].noise[:2, :2]
    assert (found.mean(0) - truth) / sd == pytest.approx(0, abs=5 / np.sqrt(400))
    assert found.std(0) / sd == pytest.approx(1, abs=0.2)
    assert sum(one.counts.sum() for one in every) == 400 * 600


def test_tables_of_dpblr_follow_the_prior():
    drawn = [worlds.draw_world(2, np.random.default_rng(i)) for i in range(2000)]
    variances = np.array([world.variance for world in drawn])
    standard = np.array([world.theta for world in drawn]) / np.sqrt(38 * variances)[:, None]
    assert variances.mean() == pytest.approx(0.5 / 19, rel=0.03)
    assert np.abs(standard.std(axis=0) - 1).max() < 0.08


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["published", "laplace", "gaussian"])
def test_release_of_dpblr_has_the_noise_it_states(noise):
    world = worlds.draw_world(50, np.random.default_rng(1))
    made = [worlds.release(world, 1.0, noise, np.random.default_rng(i)) for i in range(1500)]
    errors = np.array([one.noisy.sums[0] - one.exact.sums[0] for one in made])
    sd = worlds.noise_scales(world.rows, 1.0, noise) * (1.0 if noise == "gaussian" else np.sqrt(2))
    assert errors.std(axis=0) == pytest.approx(sd, rel=0.2)
    assert np.all(errors == errors.swapaxes(1, 2))


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


def test_simulated_unary_reports_have_the_mechanisms_means():
    question = surveys.choice_study(3, 1.0).questions[0]
    mechanism = mechanism_for(question)
    made = np.array([300_000, 200_000, 0])
    found = surveys.choice_summary(question, made, RANDOM)
    p, q = float(mechanism.p), float(mechanism.q)
    mean = q * found.n + (p - q) * made
    sd = np.sqrt(made * p * (1 - p) + (found.n - made) * q * (1 - q))
    assert np.abs(found.values @ pattern_bits(3) - mean) / sd == pytest.approx(0, abs=5)
    assert found.values.sum() == found.n


def test_simulated_numbers_spread_as_laplace_noise_does():
    question = surveys.number_study("normal", 2.0).questions[0]
    found = surveys.number_summary(question, np.full(200_000, 0.5), RANDOM)
    beyond = np.exp(-1.0) / 2
    shares = found.values[[0, -1]] / found.n
    assert shares == pytest.approx(beyond, abs=5 * np.sqrt(beyond / 200_000))


def test_simulated_records_sum_to_the_clipped_moments():
    question = surveys.record_study(2, 64.0, "linear_regression").questions[0]
    x, y = RANDOM.uniform(-1, 1, (400_000, 2)), RANDOM.uniform(-1, 1, 400_000)
    mechanism = mechanism_for(question)
    found = surveys.record_summary(question, x, y, RANDOM)
    shrink = np.maximum(np.linalg.norm(x, axis=1), 1)
    place = mechanism.coordinates.index((1, 1))
    expected = np.sum((x[:, 0] / shrink) ** 2)
    limit = 5 * np.sqrt(found.n) * mechanism.noise_sd
    assert found.values[place] / mechanism.grid == pytest.approx(expected, abs=limit)
    assert expected > 5 * limit


def test_posterior_means_of_ldpbi_match_dirichlet_at_small_noise():
    """Unary encoding always has noise on the true bit; at ε = 20, no other bit is set."""
    question = surveys.choice_study(3, 20.0).questions[0]
    made = np.array([40, 30, 10])
    counts = np.zeros((1, 8), dtype=np.int64)
    counts[0, [1, 2, 4]] = made
    (found,) = figure_3.posterior_means(counts, mechanism_for(question), figure_3.simplex_grid(120))
    assert found == pytest.approx((made + 1) / (made + 1).sum(), abs=1e-3)


def test_posterior_mean_of_ldpbi_beats_least_squares():
    grid = figure_3.simplex_grid(60)
    found = figure_3.errors((0.7, 0.2, 0.1), 0.5, 300, 200, grid)
    assert found["posterior mean"] < 0.9 * found["norm-sub"]
    assert found["norm-sub"] < found["norm"] < found["unbiased"]
