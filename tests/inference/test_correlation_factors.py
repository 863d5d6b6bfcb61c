"""Correlations' coordinates: NumPyro's map, Jacobian and law, with gradients wherever a sampler may look."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import LKJCholesky, biject_to
from numpyro.distributions.transforms import CorrCholeskyTransform

from inference.priors.correlations import CorrelationFactor, correlation_factor


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_map_and_its_volume_are_numpyros(size):
    ours, theirs = biject_to(correlation_factor), CorrCholeskyTransform()
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(5, size * (size - 1) // 2)))
        factor = ours(x)
        np.testing.assert_allclose(factor, theirs(x), atol=1e-14)
        volumes = ours.log_abs_det_jacobian(x, factor), theirs.log_abs_det_jacobian(x, factor)
        np.testing.assert_allclose(*volumes, rtol=1e-9)
        np.testing.assert_allclose(ours.inv(factor), x, rtol=1e-9)
        np.testing.assert_allclose(
            CorrelationFactor(size, 1.7).log_prob(factor), LKJCholesky(size, 1.7).log_prob(factor)
        )


def test_gradients_are_finite_far_out_where_partial_correlations_round_to_one():
    ours = biject_to(correlation_factor)

    def potential(x):
        factor = ours(x)
        return -CorrelationFactor(4, 2.0).log_prob(factor) - ours.log_abs_det_jacobian(x, factor)

    with jax.enable_x64(True):
        x = jnp.asarray([0.0, 25.0, -40.0, 1.0, -25.0, 3.0])
        slope = jax.grad(potential)(x)
        assert np.isfinite(slope).all()
        # Out there the density falls at least as exp(−2 |x|), and leads back.
        assert slope[1] > 1.9
        assert slope[2] < -1.9
        assert slope[4] < -1.9
        assert np.isfinite(jax.hessian(potential)(x)).all()
