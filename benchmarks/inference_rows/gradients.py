"""One log-density with its gradient: ours against the published dense form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks.inference_rows.row import Row
from benchmarks.sizes import Size
from inference.likelihoods.holders.groups import NoiseShape, one_by_one
from inference.likelihoods.regression.moments import Moments, linear_moments
from inference.likelihoods.regression.sums import DenseSums, NoisySums

PEOPLE = 100_000
NOISE_VARIANCE = 50.0 * PEOPLE
Parameters = dict[str, Array]
LogDensity = Callable[[Parameters, Array], Array]


def linear_gradients(size: Size) -> Iterator[Row]:
    """Linear regression at d = 10, 20 and 50 both ways, and at d = 100 ours alone."""
    densities = structured, dense
    with jax.enable_x64(True):
        for d in size.of((10, 20, 50), (10, 20, 50), (2,)):
            at, total = _example(d)
            ours, published = (_seconds(density, at, total) for density in densities)
            measured = f"{1000 * published:.1f} ms / {1000 * ours:.2f} ms = {published / ours:.0f} times"
            met = published >= 100 * ours if d == 50 else None
            yield Row(f"linear d = {d}: log-density and gradient", measured, "≥ 100 times at d = 50", met)
        large = size.of(100, 100, 2)
        alone = _seconds(densities[0], *_example(large))
        yield Row(f"linear d = {large}: log-density and gradient", f"{1000 * alone:.1f} ms", "runs", True)


def structured(at: Parameters, total: Array) -> Array:
    """The log density up to a constant, as the models have it (METHODS 4.1, 4.2)."""
    scale = np.full(len(total), NOISE_VARIANCE**0.25)
    groups = one_by_one(total[None], np.asarray([float(PEOPLE)]))[1]
    return NoisySums(_moments(at), groups, NoiseShape(scale, (), np.zeros(0))).log_prob(
        total[None, None] / np.outer(scale, scale)
    )


def dense(at: Parameters, total: Array) -> Array:
    """The same from the D by D covariance of all D entries: LDPBI equation 3, Bernstein and Sheldon 2019."""
    pairs = np.argwhere(np.triu(np.ones(total.shape)))[1:]
    i, j = pairs.T
    noise = NOISE_VARIANCE * np.where(i == j, 1.0, 0.5)[None]
    return DenseSums(_moments(at), np.full(1, PEOPLE), np.zeros(1), noise, pairs).log_prob(total[None, i, j])


def _moments(at: Parameters) -> Moments:
    covariance = at["factor"] @ at["factor"].T
    return linear_moments(at["coefficients"], at["intercept"], at["sd"], at["mean"], covariance)


def _example(d: int) -> tuple[Parameters, Array]:
    """Parameters, and a noisy sum near what they predict."""
    random = np.random.default_rng(d)
    at = {
        "coefficients": jnp.asarray(0.4 * np.cos(np.arange(d)) / np.sqrt(d)),
        "intercept": jnp.asarray(0.1),
        "sd": jnp.asarray(0.2),
        "mean": jnp.asarray(random.normal(0, 0.1, d)),
        "factor": jnp.asarray(np.tril(random.normal(0, 0.02, (d, d))) + 0.6 / np.sqrt(d) * np.eye(d)),
    }
    noise = random.normal(0, np.sqrt(NOISE_VARIANCE / 2), (d + 2, d + 2))
    total = PEOPLE * _moments(at).second + (noise + noise.T) / np.sqrt(2)
    return at, total.at[0, 0].set(PEOPLE)


def _seconds(log_density: LogDensity, at: Parameters, total: Array) -> float:
    """CPU seconds of one compiled value and gradient, the best of several."""
    step = jax.jit(jax.value_and_grad(log_density))
    jax.block_until_ready(step(at, total))
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        jax.block_until_ready(step(at, total))
        best = min(best, time.process_time() - start)
    return best
