"""Sticks broken off in order of size: the same law as any Dirichlet, derivatives by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import Dirichlet, biject_to
from numpyro.distributions.transforms import StickBreakingTransform

from inference.priors.shares import OrderedDirichlet, break_sticks, breaking_order

SHARES = np.array([0.1, 0.4, 0.05, 0.3, 0.15])


def test_order_is_by_falling_share():
    order = breaking_order(SHARES)
    assert order[0].tolist() == [1, 3, 4, 0, 2]
    assert order[0][order[1]].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_sticks_and_derivatives_match_numpyro():
    plain = StickBreakingTransform()

    def ours(x):
        shares, log_determinant = break_sticks(x)
        return jnp.sum(jnp.sin(3 * shares)) + log_determinant

    def theirs(x):
        shares = plain(x)
        return jnp.sum(jnp.sin(3 * shares)) + plain.log_abs_det_jacobian(x, shares)

    with jax.enable_x64(True):
        for x in np.random.default_rng(0).normal(0, [[1], [3]], (2, 4)):
            np.testing.assert_allclose(break_sticks(x)[0], plain(x), rtol=1e-9)
            assert float(ours(x)) == pytest.approx(float(theirs(x)), rel=1e-9)
            np.testing.assert_allclose(jax.grad(ours)(x), jax.grad(theirs)(x), rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(jax.hessian(ours)(x), jax.hessian(theirs)(x), rtol=1e-6, atol=1e-8)


def test_coordinates_invert_to_the_shares():
    with jax.enable_x64(True):
        law = OrderedDirichlet(jnp.ones(5), jnp.asarray(breaking_order(SHARES)))
        to_shares = biject_to(law.support)
        x = to_shares.inv(jnp.asarray(SHARES))
        np.testing.assert_allclose(to_shares(x), SHARES, rtol=1e-9)
        _, log_determinant = to_shares.call_with_intermediates(x)
        dense = jax.jacobian(to_shares)(x)[:-1]
        assert float(log_determinant) == pytest.approx(float(jnp.linalg.slogdet(dense)[1]))
        assert law.log_prob(SHARES) == Dirichlet(jnp.ones(5)).log_prob(SHARES)


def test_float32_sticks_are_finite_far_out():
    with jax.enable_x64(False):
        for x in np.float32([-90, -30, 0, 30, 90]):
            both = jax.value_and_grad(lambda x: jnp.sum(break_sticks(x)[0] ** 2) + break_sticks(x)[1])
            value, slope = both(jnp.full(50, x))
            assert np.isfinite(value)
            assert np.isfinite(slope).all()
