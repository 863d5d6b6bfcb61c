"""Every shape of an analysis has the likelihood, and the gradient, of enumerating all true answers."""

import jax
import numpy as np
import pytest

from inference.analyses import likelihood as cells
from inference.analyses import program
from inference.analyses.program import assemble
from tests.inference.analyses.simulated import ANSWERS, CHANNELS, any_draws, log_density, table
from tests.inference.golden.enumeration import Rows, likelihood

ROWS = 20
SHAPES = [
    ("ever ~ age + region", "logit"),
    ("ever ~ age + cov.size", "probit"),
    ("job ~ age + region", "softmax"),
    ("mood ~ age", "ordered"),
    ("income ~ job + age", "normal"),
    ("died ~ job + region", "logit"),
    ("visits ~ ever", "poisson"),
    ("ever ~ job + region", "logit"),
    ("job ~ ever + smokes + age", "softmax"),
    ("mood ~ job", "ordered"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "family"), SHAPES, ids=[one[0] for one in SHAPES])
def test_likelihood_matches_enumeration(formula, family):
    is_enumerated(formula, family)


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1_000_000], ids=["own cell", "all cells"])
def test_likelihood_by_cell_products_matches_enumeration(most, monkeypatch):
    monkeypatch.setattr(cells, "FEW_LAWS", most)
    is_enumerated(*SHAPES[7])


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "chunk"), [(0, 2000), (2, 7)])
def test_likelihood_by_rows_matches_enumeration(shape, chunk, monkeypatch):
    """In one chunk, and in chunks that do not divide the reports."""
    monkeypatch.setattr(program, "FROM_ROWS", 0)
    monkeypatch.setattr(cells, "CHUNK", chunk)
    assert assemble(table(ROWS), SHAPES[shape][0]).by_rows
    is_enumerated(*SHAPES[shape])


@pytest.mark.slow
def test_curvature_by_rows_matches_curvature_by_cells(monkeypatch):
    found = assemble(table(), "job ~ age + region")
    sites = {name: one[0, 0] for name, one in any_draws(found, 1).items()}

    def measured(dtype=np.float64):
        own = log_density(found, dtype)
        return float(jax.jit(own)(sites)), jax.jit(jax.hessian(own))(sites)

    with jax.enable_x64(True):
        value, curvature = measured()
        monkeypatch.setattr(program, "FROM_ROWS", 0)
        by_rows, of_rows = measured()
        single, _ = measured(np.float32)
    assert by_rows == pytest.approx(value, abs=1e-10)
    assert single == pytest.approx(value, abs=1e-4)
    for one, other in zip(jax.tree.leaves(curvature), jax.tree.leaves(of_rows), strict=True):
        assert np.allclose(one, other, atol=1e-9)


def is_enumerated(formula, family):
    """The value at random parameters, and every slope by differences of the enumeration."""
    whole = table(ROWS)
    chances = {name: np.asarray(CHANNELS[name])[:, one.codes].T for name, one in whole.private.items()}
    rows = Rows(whole.public, ANSWERS, chances, whole.counts)
    found, random = assemble(whole, formula, family=family), np.random.default_rng(3)
    start = {name: np.asarray(value, float) for name, value in found.initial().items()}
    # Thresholds stay in order, sds positive.
    sites = {name: value + 0.3 * random.random(value.shape) for name, value in start.items()}
    if "threshold" in sites:
        sites["threshold"] = np.sort(sites["threshold"])

    def by_enumeration(values):
        points = {name: np.reshape(value, 1) for name, value in found.parameters(values).items()}
        return np.log(likelihood(formula, family, rows, points)).sum()

    with jax.enable_x64(True):
        value, slopes = jax.jit(jax.value_and_grad(log_density(found)))(sites)
    assert float(value) == pytest.approx(by_enumeration(sites), abs=1e-10)
    for name, value in sites.items():
        for place in np.ndindex(value.shape):
            # By differences whose error is of the sixth order in the step.
            slope, step = 0.0, np.zeros(value.shape)
            step[place] = 2e-3
            for weight, times in ((45, 1), (-9, 2), (1, 3)):
                high, low = (by_enumeration({**sites, name: value + sign * times * step}) for sign in (1, -1))
                slope += weight * (high - low) / (60 * 2e-3)
            assert float(np.asarray(slopes[name])[place]) == pytest.approx(slope, rel=1e-8, abs=1e-8)
