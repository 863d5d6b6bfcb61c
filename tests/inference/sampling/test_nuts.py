"""Shapes of posteriors, and chains in white coordinates, against laws that are known."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.optimize import OptimizeResult, minimize

from inference.models.base import Model
from inference.results.convergence import mixing
from inference.sampling import nuts as sampling
from inference.sampling import whitening
from inference.sampling.chains import starts
from inference.sampling.nuts import sample
from inference.sampling.whitening import Shape, finite

PRECISION = np.array([[4.0, -3.0, 0.0], [-3.0, 9.0, 1.0], [0.0, 1.0, 400.0]])
MIDDLE = np.array([1.0, -2.0, 30.0])


def test_starts_differ_and_have_finite_density():
    def slope(vector):
        return (np.inf, np.zeros(3)) if np.linalg.norm(vector) > 1 else (0.0, np.zeros(3))

    found = starts(finite(slope), Shape(np.zeros(3), 50 * np.eye(3)), np.random.default_rng(1), 4)
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

    monkeypatch.setattr("inference.sampling.chains.has_processors", lambda: alone)
    if alone:
        monkeypatch.setattr("inference.sampling.whitening.MOST_DENSE", 1)
        monkeypatch.setattr(sampling, "MOST_DENSE", 1)
    model = Model(program, {"shift": 1.0}, {"x": np.zeros(3), "y": 1.0}, named)
    drawn = sample(model, seed=3)
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
