"""Laws of counts of reports about a choice.

If reports fall in few cells, counts are sufficient and exactly multinomial (METHODS 3.3). Counts of how often
each choice was supported are taken as normal, in O(k) for any number of reports (METHODS 3.2).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from scipy.linalg import hadamard


def response_cells(probs: Array, p: float) -> Array:
    """Return log probabilities (k,) of the reports of k-ary randomized response. Yes/no is k = 2.

    Args:
        probs: law of the true choice, shape (k,).
        p: probability of the truth; each other answer has the probability q, and p + (k - 1) q is 1.
    """
    q = (1 - p) / (len(probs) - 1)
    return jnp.log(q + (p - q) * probs)


def hadamard_cells(probs: Array, p: float, blocks: int, width: int) -> Array:
    """Return log probabilities of the columns that Hadamard response reports, blocks side by side.

    Choice x is row x mod (width - 1) + 1 of block x div (width - 1). With probability p a report is in a
    column of the choice's block in which that row of Sylvester's matrix is 1, and in each of the 2 blocks - 1
    other halves of blocks with probability (1 - p) / (2 blocks - 1). One fast Walsh-Hadamard transform gives
    all cells: O(blocks width log width).

    Args:
        probs: law of the true choice, shape (k,), of at most blocks * (width - 1) choices.
        p: probability of the choice's own half of its block.
        blocks: how many blocks.
        width: columns of a block, a power of two.
    """
    rows = jnp.pad(probs, (0, blocks * (width - 1) - len(probs))).reshape(blocks, width - 1)
    rows = jnp.pad(rows, [(0, 0), (1, 0)])
    share = rows.sum(-1, keepdims=True)
    # The transform is within [-share, share]; its rounding must not leave it.
    even = jnp.clip((share + walsh_hadamard(rows)) / 2, 0.0, share).ravel()
    elsewhere = (1 - p) / (2 * blocks - 1)
    return jnp.log(elsewhere + (p - elsewhere) * even) - np.log(width / 2)


def walsh_hadamard(x: Array) -> Array:
    """Multiply the last axis, of a length K that is a power of two, by Sylvester's matrix.

    The matrix is a Kronecker product, so it is applied in factors of at most 64: O(K log K) in few matrix
    products, which compile fast and use the processor well.
    """
    shape, bits = x.shape, x.shape[-1].bit_length() - 1
    done = 1
    while bits:
        size = 1 << min(bits, 6)
        signs = jnp.asarray(hadamard(size), x.dtype)
        x = x.reshape(*shape[:-1], -1, size, done)
        x = jnp.einsum("ij,...ajb->...aib", signs, x, precision=jax.lax.Precision.HIGHEST)
        bits, done = bits - min(bits, 6), done * size
    return x.reshape(shape)


class SupportCounts(Distribution):
    """Counts of the reports that support each choice, taken as normal with the exact moments (METHODS 3.2).

    Mean n m, m = q + (p - q) probs. The covariance of one report is diag(diagonal) + U low U' with U =
    (1, probs). With no reports the density is 1. Values are real vectors (k,).

    Args:
        probs: law of the true choice, shape (k,).
        p: probability that a report supports the true choice.
        q: probability that it supports another.
        total_count: how many reports, n.
        diagonal: shape (k,).
        low: shape (2, 2).
        on_plane: whether the counts have a known sum. The density is then on that plane: a value's part off
            it is ignored, and a multiple of 1 1' changes nothing.
    """

    support = constraints.real_vector
    pytree_data_fields = ("probs", "mean_of_one", "total_count", "diagonal", "low")
    pytree_aux_fields = ("on_plane",)

    def __init__(
        self,
        probs: Array,
        p: Array,
        q: Array,
        total_count: ArrayLike,
        diagonal: Array,
        low: Array,
        on_plane: bool = False,
    ) -> None:
        self.probs, self.mean_of_one = probs, q + (p - q) * probs
        self.total_count = jnp.asarray(total_count, probs.dtype)
        self.diagonal, self.low, self.on_plane = diagonal, low, on_plane
        super().__init__((), probs.shape)

    @property
    def mean(self) -> Array:
        return self.total_count * self.mean_of_one

    @property
    def _columns(self) -> Array:
        return jnp.stack([jnp.ones_like(self.probs), self.probs], -1)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw counts in O(k): the covariance is a diagonal and a rank of two, and so is its root, scaled.

        Args:
            key: JAX's random key.
            sample_shape: shape of the sample; the event's follows it.

        Returns:
            Real vectors (sample_shape..., k).
        """
        assert key is not None
        white: Array = jax.random.normal(key, self.shape(sample_shape), self.probs.dtype)
        spread = jnp.sqrt(self.diagonal)
        axes, inside = jnp.linalg.qr(self._columns / spread[:, None])
        values, vectors = jnp.linalg.eigh(jnp.eye(2) + inside @ self.low @ inside.T)
        gain = (vectors * (jnp.sqrt(jnp.maximum(values, 0.0)) - 1)) @ vectors.T
        white = white + (white @ axes) @ gain @ axes.T
        return self.mean + jnp.sqrt(self.total_count) * spread * white

    def log_prob(self, value: ArrayLike) -> Array:
        """By Woodbury's identity."""
        residual, low, dimension = jnp.asarray(value) - self.mean, self.low, len(self.probs)
        shift = jnp.zeros(())
        if self.on_plane:
            residual = residual - residual.mean(-1, keepdims=True)
            dimension, shift = dimension - 1, jnp.log(-low[0, 0] * dimension)
            low = low.at[0, 0].set(0.0)
        scaled = self._columns / self.diagonal[:, None]
        small = jnp.eye(2) + low @ (self._columns.T @ scaled)
        cross = residual @ scaled
        quadratic = jnp.sum(residual**2 / self.diagonal, -1)
        quadratic = quadratic - jnp.sum(cross * (cross @ jnp.linalg.solve(small, low).T), -1)
        log_det = jnp.log(self.diagonal).sum() + jnp.log(jnp.linalg.det(small)) - shift
        n = jnp.maximum(self.total_count, 1.0)
        density = -(quadratic / n + log_det + dimension * jnp.log(2 * jnp.pi * n)) / 2
        return jnp.where(self.total_count > 0, density, 0.0)


def bit_sums(
    probs: Array, p: ArrayLike, q: ArrayLike, total_count: ArrayLike, noise_variance: ArrayLike = 0.0
) -> SupportCounts:
    """Return the law of sums of independent bits, 1 with probability p for the true choice, else q.

    Of OUE, SUE and local hashing, q = 1 / hashes, if the hashes of any three choices are independent: then
    two choices other than the true one are supported independently of each other. With p = 1, q = 0 and a
    noise variance of each sum it is the law of a secure sum of one-hot vectors.
    """
    p, q, probs = jnp.asarray(p), jnp.asarray(q), jnp.asarray(probs)
    noise = jnp.asarray(noise_variance) / jnp.maximum(jnp.asarray(total_count), 1.0)
    # m (1 - m) + (p - q)^2 probs^2, whose squares cancel.
    diagonal = q * (1 - q) + (p - q) * (1 - 2 * q) * probs + noise
    low = jnp.diag(jnp.stack([jnp.zeros_like(p), -((p - q) ** 2)]))
    return SupportCounts(probs, p, q, total_count, diagonal, low)


def subset_counts(probs: Array, p: ArrayLike, size: int, total_count: ArrayLike) -> SupportCounts:
    """Return the law of the counts of each choice in the sets of subset selection, 2 <= size < k.

    The true choice is in the set with probability p, the others fill it uniformly: q = (size - p) / (k - 1),
    and the counts sum to size * total_count. With P(i, j in S) = either + b (probs_i + probs_j), the
    covariance of one report is diag(d) + c 1 1' + e (1 probs' + probs 1') - (p - q)^2 probs probs', c < 0.
    """
    p, probs, s = jnp.asarray(p), jnp.asarray(probs), size
    k = len(probs)
    q = (s - p) / (k - 1)
    either = (p * (s - 1) * (s - 2) + (1 - p) * s * (s - 1)) / ((k - 1) * (k - 2))
    constant, slope = either - q**2, p * (s - 1) / (k - 1) - either - q * (p - q)
    diagonal = q * (1 - q) - constant + ((p - q) * (1 - 2 * q) - 2 * slope) * probs
    low = jnp.stack([jnp.stack([constant, slope]), jnp.stack([slope, -((p - q) ** 2)])])
    return SupportCounts(probs, p, q, total_count, diagonal, low, on_plane=True)
