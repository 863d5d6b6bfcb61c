"""One log-density with its gradient: ours against the published dense form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks.baselines import DenseLinearStatistics
from benchmarks.inference_rows.row import Row
from benchmarks.sizes import Size
from inference.likelihoods import SummedLinearStatistics

PEOPLE = 100_000
NOISE_VARIANCE = 50.0 * PEOPLE
Parameters = dict[str, Array]
LogDensity = Callable[[Parameters, Array], Array]


def linear_gradients(size: Size) -> Iterator[Row]:
    """Linear regression at d = 10, 20 and 50 both ways, and at d = 100 ours alone."""
    densities = [partial(log_density, law) for law in (SummedLinearStatistics, DenseLinearStatistics)]
    with jax.enable_x64(True):
        for d in size.of((10, 20, 50), (10, 20, 50), (2,)):
            at, total = _example(d)
            ours, dense = (_seconds(density, at, total) for density in densities)
            difference = float(densities[0](at, total) - densities[1](at, total))
            print(f"  the two log-densities differ by {difference:.2g} at d = {d}")
            measured = f"{1000 * dense:.1f} ms / {1000 * ours:.2f} ms = {dense / ours:.0f} times"
            met = dense >= 100 * ours if d == 50 else None
            yield Row(f"linear d = {d}: log-density and gradient", measured, "≥ 100 times at d = 50", met)
        large = size.of(100, 100, 2)
        alone = _seconds(densities[0], *_example(large))
        yield Row(f"linear d = {large}: log-density and gradient", f"{1000 * alone:.1f} ms", "runs", True)


def log_density(law: type[SummedLinearStatistics], at: Parameters, total: Array) -> Array:
    """Ours (METHODS 4.1, 4.2) or LDPBI's equation 3, by the class of the law."""
    return _law(law, at).log_prob(total)


def _law(kind: type[SummedLinearStatistics], at: Parameters) -> SummedLinearStatistics:
    return kind(
        at["coefficients"],
        at["intercept"],
        at["mean"],
        at["factor"] @ at["factor"].T,
        sd=at["sd"],
        total_count=PEOPLE,
        noise_variance=NOISE_VARIANCE,
        constant_weight=1.0,
        response_weight=1.0,
    )


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
    mean = _law(SummedLinearStatistics, at).mean
    return at, mean + (noise + noise.T) / np.sqrt(2)


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
