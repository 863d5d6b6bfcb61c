"""Every shape of an analysis has the likelihood, and the gradient, of enumerating all true answers."""

import jax
import numpy as np
import pytest

from inference.analyses import program
from inference.analyses.program import assemble
from tests.inference.analyses.simulated import ANSWERS, CHANNELS, any_draws, log_density, table
from tests.inference.golden.enumeration import Rows, likelihood

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


# Sums by each cell of the answers, by products of all cells, and by rows in one chunk and in uneven chunks.
LIMITED = [
    (*SHAPES[7], {"likelihood.FEW_LAWS": 0}),
    (*SHAPES[7], {"likelihood.FEW_LAWS": 1_000_000}),
    (*SHAPES[0], {"program.FROM_ROWS": 0}),
    (*SHAPES[2], {"program.FROM_ROWS": 0, "likelihood.CHUNK": 7}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "family", "limits"), [*((*one, {}) for one in SHAPES), *LIMITED])
def test_likelihood_matches_enumeration(formula, family, limits, monkeypatch):
    """The value at random parameters, and every slope by differences of the enumeration."""
    for name, limit in limits.items():
        monkeypatch.setattr(f"inference.analyses.{name}", limit)
    whole = table(20)
    chances = {name: np.asarray(CHANNELS[name])[:, one.codes].T for name, one in whole.private.items()}
    rows = Rows(whole.public, ANSWERS, chances, whole.counts)
    found, random = assemble(whole, formula, family=family), np.random.default_rng(3)
    assert found.by_rows == ("program.FROM_ROWS" in limits)
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
