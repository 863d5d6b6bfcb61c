"""Numbers nearly all at a bound: chains that reach all of a wide posterior, and a note."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.models import model_for
from inference.models.base import IDENTITY, Sampling
from inference.models.number import AT_A_BOUND, bound_met, wedge
from inference.results.convergence import mixing
from inference.sampling import sample
from inference.sampling.space import as_arrays, space_of
from ldp_client import mechanism_for
from schemas import Study
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies

pytestmark = pytest.mark.long_runs


def model_at(place, n=500, epsilon="20", prior=None):
    """The normal model of numbers whose reports all lie in one cell."""
    template = {**studies.AGE, "model": {"name": "normal", "prior": prior or {}}}
    question = Study(studies.document(studies.with_epsilon(template, epsilon))).questions[0]
    mechanism = mechanism_for(question)
    values = np.zeros(REDUCTIONS[mechanism.name].size(mechanism), dtype=np.int64)
    values[int(place * (len(values) - 1))] = n
    return model_for(question, QuestionSummary(n, values))


@pytest.fixture(scope="module")
def upper():
    """As reports would come: a Laplace histogram around the upper bound, and what is drawn from it."""
    model = model_at(1.0)
    counts = np.zeros(len(np.asarray(model.data["counts"])))
    cells = len(counts) - 2
    # Half beyond the bound, half below it, decaying with the noise's scale of a twentieth.
    shares = np.exp(-20 * (1 - (np.arange(cells) + 0.5) / cells))
    counts[1:-1] = np.rint(250 * shares / shares.sum())
    counts[-1] = 500 - counts.sum()
    model = replace(model, data={**model.data, "counts": counts.astype(np.int64)})
    return model, sample(model, seed=1, kept=500)


@pytest.mark.slow
def test_chains_on_ridge_mix_without_divergences(upper):
    model, drawn = upper
    assert model.notes == (AT_A_BOUND,)
    assert not drawn.diverging.any()
    parameters = model.parameters(drawn.sites)
    assert not list(mixing(parameters).findings(parameters))


@pytest.mark.slow
def test_posterior_on_ridge_matches_original_coordinates(upper):
    """Against sums over a grid of mean and log sd, in scaled units."""
    model, drawn = upper
    with jax.enable_x64(True):
        space, data = space_of(replace(model, sampling=Sampling())), as_arrays(model.data)
        mean, log_sd = np.meshgrid(np.linspace(0.9, 6.0, 80), np.linspace(-9.0, 1.5, 80))
        # Sites are in the order of their names.
        vectors = jnp.asarray(np.stack([mean.ravel(), log_sd.ravel()], -1))
        potentials = np.asarray(jax.jit(jax.vmap(space.potential, (0, None)))(vectors, data))
    weights = np.exp(potentials.min() - potentials)
    weights /= weights.sum()
    for name, values in (("mean", mean.ravel()), ("sd", np.exp(log_sd.ravel()))):
        expected = weights @ values
        sd = np.sqrt(weights @ (values - expected) ** 2)
        ess = mixing({name: drawn.sites[name]}).ess_bulk[name]
        assert abs(drawn.sites[name].mean() - expected) < 5 * sd / np.sqrt(ess)
        assert drawn.sites[name].std() == pytest.approx(sd, rel=0.15)


def test_change_of_coordinates_inverts_with_right_jacobian():
    own = wedge("mean", "sd", 1.0)
    with jax.enable_x64(True):
        for w, log_sd in [(0.3, -2.0), (-1.5, 0.4), (4.0, -3.0)]:
            at = {"mean": jnp.asarray(w), "sd": jnp.asarray(log_sd)}
            found, log_volume = own.forward(at)
            again = own.inverse(found)
            assert [float(again[name]) for name in at] == pytest.approx([w, log_sd], abs=1e-9)
            slopes = jax.jacfwd(lambda at: own.forward(at)[0])(at)
            matrix = [[slopes[row][column] for column in at] for row in at]
            assert float(log_volume) == pytest.approx(np.linalg.slogdet(np.array(matrix, float))[1])


def test_only_answers_at_a_bound_are_noted():
    middles = np.array([-0.05, 0.005, 0.5, 0.985, 1.05])
    none, lower, inside, upper = np.eye(5)[[2, 1, 3, 4]]
    assert bound_met(middles, none, 0.001) is None
    assert bound_met(middles, lower, 0.003) == 0
    assert bound_met(middles, inside, 0.001) is None
    assert bound_met(middles, upper, 0.001) == 1
    # So much noise does not tell.
    assert bound_met(middles, upper, 0.1) is None
    assert model_at(0.5).notes == ()
    assert model_at(0.5).sampling.coordinates is IDENTITY
