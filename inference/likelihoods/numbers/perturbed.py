"""Likelihoods of perturbed numbers: of each report, and of a histogram of them (METHODS 2)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, Exponential, Normal, constraints
from numpyro.distributions.util import not_jax_tracer, validate_sample

from inference.likelihoods.common import CellCounts
from inference.likelihoods.numbers.clipped import ClippedContinuous, ClippedDiscrete, ClippedLaw
from inference.likelihoods.numbers.closed_forms import ClippedExponential, ClippedNormal
from inference.likelihoods.numbers.noise import LaplaceNoise, Noise


def clipped(base: Distribution, low: float = 0.0, high: float = 1.0) -> ClippedLaw:
    """Build the law of one answer that is clipped to bounds.

    Normal and Exponential have a closed form under Laplace noise, laws on the integers a finite sum. Others
    are integrated.

    Args:
        base: law of the answer before it is clipped; a ClippedLaw is returned as it is, with its own bounds.
        low: lower bound, in the unit of the law.
        high: upper bound.

    Returns:
        The law on [low, high].

    Raises:
        ValueError: the base is not a law of one number.
    """
    if isinstance(base, ClippedLaw):
        return base
    closed: dict[type, type[ClippedLaw]] = {Normal: ClippedNormal, Exponential: ClippedExponential}
    other = ClippedDiscrete if base.is_discrete else ClippedContinuous
    return closed.get(type(base), other)(base, low, high)


class Perturbed(Distribution):
    """One clipped and perturbed number: each report z = clip(x, low, high) + noise, x ~ base.

    Base, clip, noise and reports share one unit. Batch shapes broadcast: a noise of shape (n,) gives each
    report its own scale. Cost O(reports); for many reports of one noise a histogram (BinnedPerturbed) costs
    less.

    Args:
        base: any NumPyro law of one number, or a ClippedLaw (which keeps its own bounds).
        clip: (low, high).
        noise: LaplaceNoise or GaussianNoise.

    Raises:
        ValueError: Laplace noise is so weak that its exponentials overflow, or the base is not a law of one
            number.

    Source:
        METHODS 2.1 to 2.4, LDPBI 3.2.1.
    """

    support = constraints.real
    pytree_data_fields = ("base", "noise")

    def __init__(self, base: Distribution, clip: tuple[float, float], noise: Noise) -> None:
        self.base, self.noise = clipped(base, *clip), noise
        _require_range(noise, np.array([self.base.low, self.base.high]))
        batch_shape = jnp.broadcast_shapes(self.base.batch_shape, noise.batch_shape)
        super().__init__(batch_shape)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        keys = jax.random.split(key)
        answers = self.base.expand(self.batch_shape).sample(keys[0], sample_shape)
        return answers + self.noise.expand(self.batch_shape).sample(keys[1], sample_shape)

    @validate_sample
    def log_prob(self, value: ArrayLike) -> Array:
        z = jnp.asarray(value, float)
        shape = jnp.broadcast_shapes(z.shape, self.batch_shape)
        scale = jnp.asarray(self.noise.scale)
        return self.base.log_perturbed(self.noise.name, jnp.broadcast_to(z, shape), scale)


def _require_range(noise: Noise, edges: ArrayLike) -> None:
    """Refuse noise so weak that exp(span / scale) overflows: 79 scales in float32, 638 in float64."""
    if not isinstance(noise, LaplaceNoise) or not all(not_jax_tracer(x) for x in (noise.scale, edges)):
        return
    spans = np.ptp(np.asarray(edges), axis=-1) / np.asarray(noise.scale)
    limit = 0.9 * float(np.log(np.finfo(jnp.result_type(float)).max))
    if np.any(spans > limit):
        raise ValueError(f"edges span {np.max(spans):.6g} noise scales, more than {limit:.0f}")


class BinnedPerturbed(CellCounts):
    """Histogram of `total_count` clipped and perturbed numbers over the cells of `edges`.

    A value is an integer vector (..., K + 2): reports below the first edge, in [edge k, edge k+1), and above
    the last edge. With Laplace noise the shape of a report's law outside the bounds does not depend on the
    parameters, so the two outer cells lose nothing. Reports on a grid of step g have the edges low - g/2,
    ..., high + g/2. Base, noise and edges share one unit; (high - low) near 1 suits float32. Cost O(K),
    independent of `total_count`.

    Args:
        base: law of the answer before noise.
        noise: LaplaceNoise or GaussianNoise.
        edges: increasing, shape (K + 1,); they cover the base law's [low, high].
        total_count: how many reports, shape (...).

    Raises:
        ValueError: the edges do not cover the bounds, or span more than 79 noise scales in float32 (638 in
            float64), at which hardly any randomness is left.

    Source:
        METHODS 2.5.
    """

    def __init__(self, base: ClippedLaw, noise: Noise, edges: ArrayLike, total_count: ArrayLike) -> None:
        if all(not_jax_tracer(x) for x in (base.low, base.high, edges)):
            first, last = np.asarray(edges)[..., 0], np.asarray(edges)[..., -1]
            if np.any(first > base.low) or np.any(last < base.high):
                bounds = f"[{base.low}, {base.high}]"
                raise ValueError(f"edges from {first} to {last} do not cover the bounds {bounds}")
        _require_range(noise, edges)
        # Edges that are known before tracing stay so: results that depend on them alone are computed once.
        edges = np.asarray(edges) if not_jax_tracer(edges) else edges
        probs = base.perturbed_cells(noise.name, edges, noise.scale)
        probs = jnp.maximum(probs, np.finfo(probs.dtype).tiny)
        # Otherwise a quadrature that finds a thousandth too much would gain that for each report.
        log_probs = jnp.log(probs) - jnp.log(probs.sum(-1, keepdims=True))
        super().__init__(log_probs, total_count)
