"""Log-density and gradient of linear regression from sums: O(d^3) against the published dense O(d^6).

python -m benchmarks.regression_forms [d …]        (default 10 20 50 100; dense up to 50)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from inference.likelihoods import SummedLinearStatistics
from inference.likelihoods.baselines import DenseLinearStatistics

SIZES = (10, 20, 50, 100)
MOST_DENSE = 50


def evaluation(law: type[SummedLinearStatistics], d: int) -> Callable[[], Any]:
    """One evaluation of log-density and gradient in slopes and feature covariance, compiled."""
    root = np.random.default_rng(0).normal(size=(d, d)) / np.sqrt(4 * d)
    covariance = root @ root.T + 0.1 * np.eye(d)
    sums = {"total_count": 10_000, "noise_variance": 1e4}

    def density(slopes: jax.Array, covariance: jax.Array) -> jax.Array:
        return law(slopes, 0.1, 0.5, np.full(d, 0.1), covariance, **sums).log_prob(value)

    at = np.full(d, 0.2)
    value = SummedLinearStatistics(at, 0.1, 0.5, np.full(d, 0.1), covariance, **sums).mean
    compiled = jax.jit(jax.value_and_grad(density, (0, 1)))
    slopes, matrix = jnp.asarray(at), jnp.asarray(covariance)
    return lambda: jax.block_until_ready(compiled(slopes, matrix))


def milliseconds(call: Callable[[], Any], seconds: float = 2.0) -> float:
    """The fastest of the repetitions that fit into a few seconds, after one that compiles."""
    call()
    times: list[float] = []
    begun = perf_counter()
    while len(times) < 3 or perf_counter() - begun < seconds:
        before = perf_counter()
        call()
        times.append(1000 * (perf_counter() - before))
    return min(times)


def main(sizes: list[int]) -> None:
    """Print one line for each number of features."""
    jax.config.update("jax_enable_x64", True)
    print(f"{'d':>4} {'O(d^3), ms':>12} {'dense, ms':>12} {'times faster':>13}")
    for d in sizes:
        ours = milliseconds(evaluation(SummedLinearStatistics, d))
        dense = milliseconds(evaluation(DenseLinearStatistics, d)) if d <= MOST_DENSE else float("nan")
        print(f"{d:4} {ours:12.3f} {dense:12.1f} {dense / ours:13.0f}", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
