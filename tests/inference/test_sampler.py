"""Shapes of posteriors, and chains in white coordinates, against laws that are known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from inference.models.base import Model
from inference.results.diagnostics import mixing
from inference.sampling import nuts as sampling
from inference.sampling import sample
from inference.sampling.chains import starts
from inference.sampling.whitening import WIDEST, Shape, finite, reshaped, shape_of

PRECISION = np.array([[4.0, -3.0, 0.0], [-3.0, 9.0, 1.0], [0.0, 1.0, 400.0]])
MIDDLE = np.array([1.0, -2.0, 30.0])


def gaussian(vector):
    away = vector - MIDDLE
    return away @ PRECISION @ away / 2, PRECISION @ away


def test_shape_of_gaussian_has_its_mean_and_covariance():
    shape = shape_of(finite(gaussian), np.zeros(3))
    assert shape.centre == pytest.approx(MIDDLE, abs=1e-3)
    assert shape.factor @ shape.factor.T == pytest.approx(np.linalg.inv(PRECISION), abs=1e-6)


def test_wide_models_have_a_width_for_each_coordinate(monkeypatch):
    monkeypatch.setattr("inference.sampling.whitening.MOST_DENSE", 2)
    widths = shape_of(finite(gaussian), np.zeros(3)).factor
    assert widths == pytest.approx(1 / np.sqrt(np.diag(PRECISION)), rel=0.5)


def test_flat_directions_saddles_and_walls_have_a_shape():
    def slope(vector):
        """Flat in the first direction, a ridge in the second, and nothing beyond 5 in the third."""
        _, y, z = vector
        value = np.nan if z > 5 else np.cos(y) * 2 + z**2 / 2
        return value, np.array([0.0, -2 * np.sin(y), z])

    shape = shape_of(finite(slope), np.array([0.3, 0.0, 4.9]))
    assert np.isfinite(shape.factor).all()
    assert np.linalg.norm(shape.factor[0]) == pytest.approx(WIDEST)


def test_draws_outweigh_the_first_guess_as_they_become_many():
    random = np.random.default_rng(1)
    wrong = Shape(np.zeros(3), np.eye(3))
    true = np.linalg.cholesky(np.linalg.inv(PRECISION))
    draws = MIDDLE + random.normal(size=(4, 2000, 3)) @ true.T
    found = reshaped(wrong, draws)
    assert found.centre == pytest.approx(MIDDLE, abs=0.1)
    assert found.factor @ found.factor.T == pytest.approx(true @ true.T, abs=0.05)
    few = reshaped(wrong, draws[:, :2])
    assert np.linalg.eigvalsh(few.factor @ few.factor.T).min() > 0.5


def test_starts_differ_and_have_finite_density():
    def slope(vector):
        return (np.inf, np.zeros(3)) if np.linalg.norm(vector) > 1 else (0.0, np.zeros(3))

    found = starts(finite(slope), Shape(np.zeros(3), 50 * np.eye(3)), np.random.default_rng(1), 4)
    assert (np.linalg.norm(found, axis=1) <= 1).all()
    assert len(np.unique(found[:, 0])) == 4


def known_model():
    """A correlated Gaussian vector, a skewed number, and data that move the vector by one."""

    def program(shift):
        numpyro.sample("x", dist.MultivariateNormal(MIDDLE + shift, precision_matrix=PRECISION))
        numpyro.sample("y", dist.Gamma(1.5, 0.1))

    start = {"x": np.zeros(3), "y": 1.0}
    own = lambda draws: {f"x{i}": draws["x"][..., i] for i in range(3)} | {"y": draws["y"]}  # noqa: E731
    return Model(program, {"shift": 1.0}, start, own)


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True], ids=["side by side", "in threads"])
def test_chains_draw_from_a_known_law(monkeypatch, alone):
    monkeypatch.setattr("inference.sampling.chains.has_processors", lambda: alone)
    if alone:
        monkeypatch.setattr("inference.sampling.whitening.MOST_DENSE", 1)
        monkeypatch.setattr(sampling, "MOST_DENSE", 1)
    model = known_model()
    drawn = sample(model, seed=3)
    found = model.parameters(drawn.sites)
    ess = mixing(found).ess_bulk
    sds = [*np.sqrt(np.diag(np.linalg.inv(PRECISION))), np.sqrt(150.0)]
    for (name, draws), mean, sd in zip(found.items(), [*(MIDDLE + 1), 15.0], sds, strict=True):
        assert ess[name] > 400
        assert draws.mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(ess[name]))
        assert draws.std() == pytest.approx(sd, rel=0.2)
    assert not drawn.diverging.any()


@pytest.mark.slow
def test_progress_of_unmixed_chains_ends_each_stretch():
    heard = []
    drawn = sample(
        known_model(), 3, warmup=(100,), kept=100, enough=lambda _sites: False, count=2, progress=heard.append
    )
    assert drawn.sites["y"].shape == (2, 400)
    assert [step.share for step in heard] == [0, 0.5, 1, 0, 1, 0, 1, 0, 1]


@pytest.mark.slow
def test_a_wrong_gradient_of_the_shape_does_not_change_the_law(monkeypatch):
    """The shape only sets the pace: under a shape that is far off, the draws follow the same law."""
    monkeypatch.setattr(
        sampling, "shape_of", lambda _slope, start: Shape(start, np.diag([0.1, 3.0, 1.0, 5.0]))
    )
    monkeypatch.setattr(sampling, "WARMUP", (100, 100))
    found = known_model().parameters(sample(known_model(), seed=3, warmup=(100, 100)).sites)
    assert found["x0"].mean() == pytest.approx(MIDDLE[0] + 1, abs=0.15)
    assert found["y"].mean() == pytest.approx(15.0, abs=2.0)


def test_leapfrog_step_is_reversible_in_white_coordinates():
    """A step there and back ends where it began."""
    from inference.sampling.chains import Chains, IntegratorState
    from inference.sampling.space import Space

    with jax.enable_x64(True):
        space = Space(lambda v, _: jnp.sum(v**4), lambda v, _: {"x": v}, lambda first, _: first["x"], 3)
        factor = jnp.asarray(np.linalg.cholesky(np.linalg.inv(PRECISION)))
        step = Chains(space, 1)._leapfrog(factor, {})
        place, pace = jnp.asarray([0.3, -0.2, 0.9]), jnp.asarray([1.0, 0.5, -1.0])
        start = IntegratorState(place, pace, 0.0, (4 * place**3) @ factor)
        there = step(0.1, None, start)
        back = step(-0.1, None, there)
        assert np.asarray(back.z) == pytest.approx(np.asarray(place), abs=1e-12)
        assert np.asarray(back.r) == pytest.approx(np.asarray(pace), abs=1e-12)
        assert np.asarray(there.z) != pytest.approx(np.asarray(place), abs=1e-3)
