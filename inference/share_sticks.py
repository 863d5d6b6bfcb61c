"""Shares with a Dirichlet law of small or unknown concentration, in coordinates of moderate width.

Under a concentration a far below one the logarithm of a share has an sd of 1/a: a sampler needs very long
paths, and shares become zero in floating point, where a Dirichlet's density is not finite. Here sticks are
broken off in a given order, and the logit x of each one's part is x = softplus(y)/B − softplus(−y)/A, A =
a/(1 + a) and likewise B: however small a and b are, the coordinate y of a part with law Beta(a, b) has tails
exp(−(1 + b) y) and exp((1 + a) y). The density is that of the part's logit, which stays finite.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.nn import log_sigmoid, softplus
from jax.scipy.special import betaln
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

_POSITIVE = constraints.independent(constraints.positive, 1)
# Bisections of an interval of at most some 10⁴.
_HALVINGS = 64


class ShareSticks(Distribution):
    """Coordinates y (k − 1,) of shares (k,) ~ Dirichlet(concentration), in the order of breaking.

    guide (k,), told (k,): where told, a stick's coordinate is that of the concentrations `guide`, so that its
    meaning does not change with the concentration. The law of shares is the same whatever they are.
    """

    arg_constraints = {"concentration": _POSITIVE, "guide": _POSITIVE}  # noqa: RUF012
    support = constraints.real_vector

    def __init__(
        self,
        concentration: ArrayLike,
        guide: ArrayLike,
        told: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration, self.guide = jnp.asarray(concentration), jnp.asarray(guide)
        self.told = jnp.asarray(told)
        super().__init__((), (self.concentration.shape[-1] - 1,), validate_args=validate_args)

    def shares(self, y: Array) -> Array:
        """Shares (k,) of coordinates (k − 1,), in the order of breaking; the smallest may be zero."""
        x = self._logits(y)
        left = jnp.cumsum(log_sigmoid(-x), -1)
        before = jnp.concatenate([jnp.zeros_like(left[..., :1]), left[..., :-1]], -1)
        return jnp.exp(jnp.concatenate([log_sigmoid(x) + before, left[..., -1:]], -1))

    def coordinates(self, log_shares: Array) -> Array:
        """Coordinates (k − 1,) of the logarithms of shares (k,), which need not add up to one."""
        after = jax.lax.cumlogsumexp(log_shares, axis=log_shares.ndim - 1, reverse=True)[..., 1:]
        x = log_shares[..., :-1] - after
        low, high = -60 - jnp.abs(x), 60 + jnp.abs(x)

        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = (ends[0] + ends[1]) / 2
            below = self._logits(middle) < x
            return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

        low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (low, high))
        return (low + high) / 2

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        shape = (*sample_shape, self.concentration.shape[-1])
        return self.coordinates(jax.random.loggamma(key, jnp.broadcast_to(self.concentration, shape)))

    @validate_sample
    def log_prob(self, value: Any, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        y, (a, b) = jnp.asarray(value), _stick_laws(self.concentration)
        x = self._logits(y)
        slope = jnp.logaddexp(
            log_sigmoid(y) - jnp.log(self._ends[1]), log_sigmoid(-y) - jnp.log(self._ends[0])
        )
        return jnp.sum(a * log_sigmoid(x) + b * log_sigmoid(-x) - betaln(a, b) + slope, -1)

    @property
    def _ends(self) -> tuple[Array, Array]:
        """A and B of each stick."""
        own, guides = _stick_laws(self.concentration), _stick_laws(self.guide)
        a, b = (jnp.where(self.told[:-1], guide, one) for one, guide in zip(own, guides, strict=True))
        return a / (1 + a), b / (1 + b)

    def _logits(self, y: Array) -> Array:
        a, b = self._ends
        return softplus(y) / b - softplus(-y) / a


def _stick_laws(concentration: Array) -> tuple[Array, Array]:
    """a and b of each stick's part, Beta(a, b): its own concentration, and that of all later ones."""
    later = jnp.cumsum(concentration[..., ::-1], -1)[..., ::-1][..., 1:]
    return concentration[..., :-1], later
