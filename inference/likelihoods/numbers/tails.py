"""Probabilities that a law lies beyond two bounds: in closed form, by its components, else by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import log_ndtr, logsumexp
from jax.typing import ArrayLike
from numpyro.distributions import (
    Beta,
    Cauchy,
    Distribution,
    Gumbel,
    Laplace,
    Logistic,
    LogNormal,
    MixtureGeneral,
    MixtureSameFamily,
    Normal,
    Weibull,
)
from numpyro.distributions.util import not_jax_tracer

from inference.likelihoods.numbers.beyond import Beyond

Tails = tuple[Array, Array]


def log_tails(base: Distribution, low: ArrayLike, high: ArrayLike) -> Tails:
    """log P(X <= low) and log P(X >= high) of a continuous law of one number, each (batch…).

    low, high: scalars. Each component of a NumPyro mixture is taken on its own. What has no closed form
    here is integrated, to 1e-9 where its density has one peak beyond each bound, however narrow and far.
    """
    if isinstance(base, (MixtureSameFamily, MixtureGeneral)):
        return _of_mixture(base, low, high)
    known = _KNOWN.get(type(base))
    if known is not None:
        return known(base, jnp.asarray(low, float))[0], known(base, jnp.asarray(high, float))[1]
    return _below(base, low, high), _above(base, low, high)


def support_ends(base: Distribution) -> tuple[Any, Any]:
    """Finite ends of a law's support, None where it has none."""
    support = base.support
    return getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)


def log_densities(base: Distribution, points: Array) -> Array:
    """Log densities at points (batch…, p), the same shape."""
    return jnp.moveaxis(jnp.asarray(base.log_prob(jnp.moveaxis(points, -1, 0))), 0, -1)


def _below(base: Distribution, low: ArrayLike, high: ArrayLike) -> Array:
    first = support_ends(base)[0]
    if first is not None and _surely(first, low):
        return jnp.full(base.batch_shape, -jnp.inf)
    return _integrated(base, low, -1, jnp.asarray(high) - low, first)


def _above(base: Distribution, low: ArrayLike, high: ArrayLike) -> Array:
    last = support_ends(base)[1]
    if last is not None and _surely(high, last):
        return jnp.full(base.batch_shape, -jnp.inf)
    if type(base) is Beta:
        # Floats are dense at zero alone: the end at one is looked at from there.
        return _below(Beta(base.concentration0, base.concentration1), 1 - jnp.asarray(high), 1.0)
    return _integrated(base, high, 1, jnp.asarray(high) - low, last)


def _surely(larger: ArrayLike, smaller: ArrayLike) -> bool:
    """Whether it is known before tracing that one end is at least another."""
    return not_jax_tracer(larger) and not_jax_tracer(smaller) and bool(np.all(larger >= np.asarray(smaller)))


def _integrated(base: Distribution, bound: ArrayLike, outwards: int, span: Array, end: Any) -> Array:
    first, last = support_ends(base)
    room = span if first is None or last is None else jnp.minimum(span, last - first)
    density = lambda points: log_densities(base, points)  # noqa: E731
    return Beyond(density, base.batch_shape, bound, outwards, span, end, room).log_mass()


def _of_mixture(base: MixtureSameFamily | MixtureGeneral, low: ArrayLike, high: ArrayLike) -> Tails:
    """By component: each has a peak of its own, and may lie anywhere."""
    if isinstance(base, MixtureSameFamily):
        below, above = log_tails(base.component_distribution, low, high)
    else:
        each = [log_tails(part, low, high) for part in base.component_distributions]
        shape = base.batch_shape
        below, above = (jnp.stack([jnp.broadcast_to(t, shape) for t in side], -1) for side in zip(*each))
    weights = jax.nn.log_softmax(base.mixing_distribution.logits)
    return _log_sum(weights + below), _log_sum(weights + above)


def _log_sum(logs: Array) -> Array:
    """log sum exp over the last axis, whose derivative is zero, not NaN, where all are -inf."""
    some = jnp.any(logs > -jnp.inf, -1)
    return jnp.where(some, logsumexp(jnp.where(some[..., None], logs, 0.0), -1), -jnp.inf)


def _normal(base: Normal, x: Array) -> Tails:
    return _gaussian((x - base.loc) / base.scale)


def _gaussian(u: Array) -> Tails:
    return log_ndtr(u), log_ndtr(-u)


def _log_normal(base: LogNormal, x: Array) -> Tails:
    some = x > 0
    below, above = _gaussian((jnp.log(jnp.where(some, x, 1.0)) - base.loc) / base.scale)
    return jnp.where(some, below, -jnp.inf), jnp.where(some, above, 0.0)


def _weibull(base: Weibull, x: Array) -> Tails:
    some = x > 0
    until = (jnp.where(some, x, 1.0) / base.scale) ** base.concentration
    return jnp.where(some, _log_of_rest(-until), -jnp.inf), jnp.where(some, -until, 0.0)


def _gumbel(base: Gumbel, x: Array) -> Tails:
    # Beyond this the law has nothing left, and its exponential overflows.
    until = jnp.exp(jnp.minimum((base.loc - x) / base.scale, 80.0))
    return -until, _log_of_rest(-until)


def _logistic(base: Logistic, x: Array) -> Tails:
    u = (x - base.loc) / base.scale
    return -jax.nn.softplus(-u), -jax.nn.softplus(u)


def _laplace(base: Laplace, x: Array) -> Tails:
    u = (x - base.loc) / base.scale
    near = -jnp.abs(u) - jnp.log(2.0)
    return jnp.where(u < 0, near, _log_of_rest(near)), jnp.where(u < 0, _log_of_rest(near), near)


def _cauchy(base: Cauchy, x: Array) -> Tails:
    u = (x - base.loc) / base.scale
    below, above = (jnp.arctan2(jnp.ones_like(u), side) / jnp.pi for side in (-u, u))
    return jnp.log(below), jnp.log(above)


def _log_of_rest(log_share: Array) -> Array:
    """log(1 - exp(log_share)), -inf with a derivative of zero where that is nothing."""
    rest = -jnp.expm1(log_share)
    some = rest > 0
    return jnp.where(some, jnp.log(jnp.where(some, rest, 1.0)), -jnp.inf)


# {law: (law, x) -> log P(X <= x), log P(X >= x)}
_KNOWN: dict[type, Callable[..., Tails]] = {
    Normal: _normal,
    LogNormal: _log_normal,
    Weibull: _weibull,
    Gumbel: _gumbel,
    Logistic: _logistic,
    Laplace: _laplace,
    Cauchy: _cauchy,
}
