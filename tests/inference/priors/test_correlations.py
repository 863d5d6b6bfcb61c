"""Correlations' coordinates: NumPyro's map, Jacobian and law, with gradients wherever a sampler may look."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import LKJCholesky, biject_to
from numpyro.distributions.transforms import CorrCholeskyTransform

from inference.priors.correlations import CorrelationFactor, correlation_factor


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_map_and_jacobian_match_numpyro(size):
    ours, theirs = biject_to(correlation_factor), CorrCholeskyTransform()
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(5, size * (size - 1) // 2)))
        factor, others = (jax.jit(lambda x, one=one: one(x))(x) for one in (ours, theirs))
        np.testing.assert_allclose(factor, others, atol=1e-14)
        volumes = [
            jax.jit(lambda x, y, one=one: one.log_abs_det_jacobian(x, y))(x, factor) for one in (ours, theirs)
        ]
        np.testing.assert_allclose(*volumes, rtol=1e-9)
        np.testing.assert_allclose(ours.inv(factor), x, rtol=1e-9)
        np.testing.assert_allclose(
            CorrelationFactor(size, 1.7).log_prob(factor), LKJCholesky(size, 1.7).log_prob(factor)
        )


@pytest.mark.slow
def test_gradients_are_finite_at_partial_correlations_near_one():
    ours = biject_to(correlation_factor)

    def potential(x):
        factor = ours(x)
        return -CorrelationFactor(4, 2.0).log_prob(factor) - ours.log_abs_det_jacobian(x, factor)

    with jax.enable_x64(True):
        x = jnp.asarray([0.0, 25.0, -40.0, 1.0, -25.0, 3.0])
        slope = jax.jit(jax.grad(potential))(x)
        assert np.isfinite(slope).all()
        # Out there the density falls at least as exp(−2 |x|), and leads back.
        assert slope[1] > 1.9
        assert slope[2] < -1.9
        assert slope[4] < -1.9
        assert np.isfinite(jax.jit(jax.hessian(potential))(x)).all()
