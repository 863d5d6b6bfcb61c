"""Exact likelihoods of reports that stand for sets of choices: patterns, sets, packed rows (METHODS 3.2b).

Every frequency oracle reports a random set S with P(S | x) = c exp(log_odds) if x is in S, else c, with
the same c for every x. So log p(S | probs) = log c + log(1 + (exp(log_odds) - 1) sum of probs over S).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

from inference.likelihoods.choices.packing import packed_log_likelihood
from inference.likelihoods.common import multinomial_log_prob


class SupportPatterns(Distribution):
    """How many of `total_count` reports stand for each of the listed sets; exact.

    Values are integer vectors (..., P) that sum to at most `total_count`, the remainder being reports of
    other sets. Cost O(P k), independent of `total_count`. A `log_base` that is known up to a constant leaves
    the posterior as it is when no report is elsewhere.

    Args:
        probs: law of the true choice, shape (..., k).
        log_odds: log of how much likelier a set is when the true choice is in it, shape (...).
        patterns: distinct rows of bits, shape (P, k).
        log_base: log probability of each set when the true choice is not in it, shape (..., P).
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "log_odds": constraints.positive,
        "total_count": constraints.nonnegative,
    }
    pytree_data_fields = ("probs", "log_odds", "total_count", "patterns", "log_base")
    support = constraints.independent(constraints.nonnegative_integer, 1)

    def __init__(
        self,
        probs: ArrayLike,
        log_odds: ArrayLike,
        patterns: ArrayLike,
        log_base: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs = jnp.asarray(probs)
        dtype = self.probs.dtype
        self.patterns, self.log_base = jnp.asarray(patterns, dtype), jnp.asarray(log_base, dtype)
        self.log_odds, self.total_count = jnp.asarray(log_odds, dtype), jnp.asarray(total_count, dtype)
        shape = jnp.broadcast_shapes(
            self.probs.shape[:-1],
            self.log_odds.shape,
            self.log_base.shape[:-1],
            self.total_count.shape,
        )
        super().__init__(shape, (self.patterns.shape[-2],), validate_args=validate_args)

    @property
    def log_pattern_probs(self) -> Array:
        """Log probability that one report stands for each listed set, (..., P)."""
        inside = jnp.einsum("ij,...j->...i", self.patterns, self.probs)
        return self.log_base + jnp.log1p(jnp.expm1(self.log_odds)[..., None] * inside)

    @property
    def _log_probs_with_rest(self) -> Array:
        listed = self.log_pattern_probs
        rest = 1 - jnp.exp(listed).sum(-1, keepdims=True)
        # All patterns listed leave nothing but rounding, whose second derivatives would overflow.
        tiny = np.finfo(rest.dtype).tiny
        positive = rest > tiny
        log_rest = jnp.where(positive, jnp.log(jnp.where(positive, rest, 1.0)), np.log(tiny))
        return jnp.concatenate([listed, log_rest], -1)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        shape = sample_shape + self.batch_shape
        probs = jnp.broadcast_to(jnp.exp(self._log_probs_with_rest), (*shape, self.event_shape[0] + 1))
        total = jnp.broadcast_to(self.total_count, shape)
        counts: Array = jax.random.multinomial(key, total, probs, dtype=probs.dtype)
        return counts[..., :-1].astype(int)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        counts = jnp.asarray(value, self.probs.dtype)
        rest = (self.total_count - counts.sum(-1))[..., None]
        return multinomial_log_prob(self._log_probs_with_rest, jnp.concatenate([counts, rest], -1))


class UnaryEncodingPatterns(SupportPatterns):
    """Patterns of unary-encoded bits: bit j is 1 with probability p if j is true, else q, independently.

    It is the law of OUE and SUE, and with q = 1 / hashes that of local hashing under a uniformly random hash
    function (METHODS 3.1). Values are as in SupportPatterns.

    Args:
        probs: law of the true choice, shape (..., k).
        p: probability of a 1 for the true choice, shape (...).
        q: probability of a 1 for another, shape (...).
        patterns: distinct rows of bits, shape (P, k).
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {  # noqa: RUF012
        **SupportPatterns.arg_constraints,
        "p": constraints.open_interval(0.0, 1.0),
        "q": constraints.open_interval(0.0, 1.0),
    }

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        q: ArrayLike,
        patterns: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        dtype = jnp.asarray(probs).dtype
        bits = jnp.asarray(patterns, dtype)
        self.p, self.q = (jnp.asarray(x, dtype) for x in (p, q))
        p, q = self.p[..., None], self.q[..., None]
        ones = bits.sum(-1)
        log_base = ones * jnp.log(q) + (bits.shape[-1] - ones - 1) * jnp.log1p(-q) + jnp.log1p(-p)
        log_odds = (jnp.log(p) + jnp.log1p(-q) - jnp.log(q) - jnp.log1p(-p))[..., 0]
        super().__init__(probs, log_odds, bits, log_base, total_count, validate_args=validate_args)


class SupportSets(Distribution):
    """One report, as the set of choices that it stands for; relative to its law where no choice is in it.

    Values are bits (..., k), 1 where the choice is in the set. The density is 1 + (exp(log_odds) - 1) sum of
    probs over the set, all that the mechanism's law says of the choices; use it in a plate over reports. To
    simulate reports, use the mechanism: a set's own law is not stated here.

    Args:
        probs: law of the true choice, shape (..., k).
        log_odds: log of how much likelier a set is when the true choice is in it, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {"probs": constraints.simplex, "log_odds": constraints.positive}  # noqa: RUF012
    support = constraints.independent(constraints.boolean, 1)

    def __init__(self, probs: ArrayLike, log_odds: ArrayLike, *, validate_args: bool | None = None) -> None:
        self.probs = jnp.asarray(probs)
        self.log_odds = jnp.asarray(log_odds, self.probs.dtype)
        shape = jnp.broadcast_shapes(self.probs.shape[:-1], self.log_odds.shape)
        super().__init__(shape, self.probs.shape[-1:], validate_args=validate_args)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        raise NotImplementedError("simulate reports with their mechanism")

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        inside = jnp.sum(jnp.asarray(value, self.probs.dtype) * self.probs, axis=-1)
        return jnp.log1p(jnp.expm1(self.log_odds) * inside)


class PackedSupportSets(Distribution):
    """All reports at once, as packed rows: the joint density of SupportSets, in one pass and bounded memory.

    Density and gradient come from the same pass over the rows, on the device that JAX computes on. Values are
    (blocks, sets, bytes) as in `PackedSets`.

    Args:
        probs: law of the true choice, shape (k,).
        log_odds: log of how much likelier a set is when the true choice is in it.
        counts: how often each set occurred, shape (blocks, sets), as in `PackedSets`.
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {"probs": constraints.simplex, "log_odds": constraints.positive}  # noqa: RUF012
    pytree_data_fields = ("probs", "log_odds", "counts")
    support = constraints.independent(constraints.nonnegative_integer, 3)

    def __init__(
        self,
        probs: ArrayLike,
        log_odds: ArrayLike,
        counts: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs, self.counts = jnp.asarray(probs), jnp.asarray(counts)
        self.log_odds = jnp.asarray(log_odds, self.probs.dtype)
        size = -(-self.probs.shape[-1] // 8)
        super().__init__((), (*self.counts.shape, size), validate_args=validate_args)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        raise NotImplementedError("simulate reports with their mechanism")

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        return packed_log_likelihood(self.probs, jnp.expm1(self.log_odds), jnp.asarray(value), self.counts)
