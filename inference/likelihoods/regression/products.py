"""Signs of sampled products, given the products' means.

If a report has one product, the counts are exactly multinomial. The signs of one report are correlated: if it
has several products, the shares of positive signs in a block are taken as normal, with variances that the
means give exactly and with correlations estimated from the block's own patterns.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Distribution, constraints

# Products between −1 and 1 have means between them. A model may try others: from this value on (or from the
# gain, if larger) the signs' law bends, so that it stays a law and leads back.
BEND = 0.98


def product_signs(means: Array, shares: ArrayLike, gain: ArrayLike) -> Array:
    """Return log probabilities (2 T,) of negative and positive signs of each product, side by side; exact.

    A report is on product s with probability shares_s, and positive then with probability
    (1 + gain means_s) / 2, whatever law the products have.

    Args:
        means: of each product over all people, between −1 and 1, shape (T,).
        shares: probability that a report is on each product, shape (T,).
        gain: 2 p − 1 where the true sign is sent with probability p.
    """
    told, log_rest = _bent(jnp.asarray(gain), means)
    log_likely, log_rest = jnp.log1p(jnp.abs(told)) - jnp.log(2), log_rest - jnp.log(2)
    negative = jnp.where(told < 0, log_likely, log_rest)
    positive = jnp.where(told < 0, log_rest, log_likely)
    return (jnp.stack([negative, positive], axis=-1) + jnp.log(jnp.asarray(shares))[:, None]).ravel()


def _bent(gain: Array, means: Array) -> tuple[Array, Array]:
    """Return s = gain means, beyond ±bend bent to ±(bend + (1 − bend) tanh(excess)), and log(1 − |s|)."""
    told = gain * means
    bend = jnp.clip(gain, BEND, 1 - 1e-6)
    excess = jnp.maximum(jnp.abs(told) - bend, 0.0) / (1 - bend)
    told = jnp.clip(told, -bend, bend)
    # Without cancellation in the bent part.
    log_rest = jnp.where(
        excess > 0, jnp.log(2 * (1 - bend)) - jax.nn.softplus(2 * excess), jnp.log1p(-jnp.abs(told))
    )
    return told + jnp.sign(told) * (1 - bend) * jnp.tanh(excess), log_rest


# This many reports of even signs are added to a block, so that few reports show no correlations.
EVEN = 4.0


class SignPatterns(Distribution):
    """Counts of the patterns of signs of each block of products, as far as they inform the products' means.

    The signs' averages in a block of m reports are taken as normal: each has mean gain means_bj and the exact
    variance (1 − (gain means_bj)²) / m, and their correlations are the given patterns' correlations. This is
    no law of the patterns, which depend on higher moments; it holds as counts grow. Values are integer
    vectors (B 2^k,), the pattern's first product in its highest bit. How often a block was drawn carries no
    information on the means.

    Args:
        means: of each block's products over all people, between −1 and 1, shape (B, k).
        gain: by which a sign's mean is smaller than its product's.
    """

    pytree_data_fields = ("means", "gain")

    def __init__(self, means: ArrayLike, gain: ArrayLike) -> None:
        self.means, self.gain = jnp.asarray(means), jnp.asarray(gain)
        blocks, products = self.means.shape
        super().__init__((), (blocks << products,))

    @property
    def support(self) -> constraints.Constraint:
        """Vectors of counts."""
        return constraints.independent(constraints.nonnegative_integer, 1)

    def log_prob(self, value: ArrayLike) -> Array:
        """Log density of the signs' averages, given how often each block was drawn.

        Args:
            value: how often each pattern of each block came, shape (B 2^k,).

        Returns:
            One number.
        """
        products = self.means.shape[-1]
        patterns = jnp.asarray(value).reshape(-1, 1 << products)
        reports = jnp.sum(patterns, axis=-1)
        seen = patterns @ jnp.asarray(sign_table(products), float) / jnp.maximum(reports, 1.0)[:, None]
        told, variance = self.signs()
        scaled = (seen - told) * jnp.sqrt(reports)[:, None] / jnp.sqrt(variance)
        root = jnp.linalg.cholesky(correlations(patterns, jnp))
        apart = solve_triangular(root, scaled[..., None], lower=True)[..., 0]
        spread = jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)) + jnp.log(variance) / 2
        normal = -jnp.sum(apart**2 + jnp.log(2 * jnp.pi), axis=-1) / 2 - jnp.sum(spread, axis=-1)
        known = normal + products * jnp.log(jnp.maximum(reports, 1.0)) / 2
        return jnp.sum(jnp.where(reports > 0, known, 0.0))

    def signs(self) -> tuple[Array, Array]:
        """Means and variances of signs, (B, k); means beyond what products can have are bent as above."""
        told, log_rest = _bent(self.gain, self.means)
        return told, jnp.maximum(jnp.exp(log_rest), 1e-9) * (1 + jnp.abs(told))


def sign_table(products: int) -> NDArray[np.float64]:
    """The signs, −1 or 1, of each pattern of so many products, (2^k, k)."""
    patterns = np.arange(1 << products)[:, None]
    return np.asarray(2.0 * (patterns >> np.arange(products)[::-1] & 1) - 1)


def correlations(patterns: Any, numpy: Any = np) -> Any:
    """Return the correlations of each block's signs, (B, k, k), from its patterns (B, 2^k).

    numpy: use NumPy instead of JAX.
    """
    count = patterns.shape[-1]
    signs = numpy.asarray(sign_table(count.bit_length() - 1))
    shares = (patterns + EVEN / count) / (numpy.sum(patterns, axis=-1, keepdims=True) + EVEN)
    mean = shares @ signs
    both = numpy.einsum("bp,pi,pj->bij", shares, signs, signs) - mean[:, :, None] * mean[:, None]
    scale = 1 / numpy.sqrt(numpy.diagonal(both, axis1=-2, axis2=-1))
    return both * scale[:, :, None] * scale[:, None]
