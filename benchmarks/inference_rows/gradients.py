"""One log-density with its gradient: ours against the published dense form; exact unary rows on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from benchmarks.inference_rows.row import Row
from inference.likelihoods import SummedLinearStatistics

PEOPLE = 100_000
NOISE_VARIANCE = 50.0 * PEOPLE
Parameters = dict[str, Array]
LogDensity = Callable[[Parameters, Array], Array]


def linear_gradients() -> Iterator[Row]:
    """Linear regression at d = 50 both ways, and at d = 100 ours alone."""
    with jax.enable_x64(True):
        at, total = _example(50)
        ours, dense = _seconds(structured_log_density, at, total), _seconds(dense_log_density, at, total)
        difference = float(structured_log_density(at, total) - dense_log_density(at, total))
        print(f"  the two log-densities differ by {difference:.2g} at d = 50")
        measured = f"{1000 * dense:.0f} ms / {1000 * ours:.2f} ms = {dense / ours:.0f} times"
        yield Row("linear d = 50: log-density and gradient", measured, "≥ 100 times", dense >= 100 * ours)
        large = _seconds(structured_log_density, *_example(100))
        yield Row("linear d = 100: log-density and gradient", f"{1000 * large:.1f} ms", "runs", True)


def structured_log_density(at: Parameters, total: Array) -> Array:
    """Ours, with intercept and uncentred features (METHODS 4.1, 4.2)."""
    law = SummedLinearStatistics(
        at["coefficients"],
        at["intercept"],
        at["sd"],
        at["mean"],
        at["factor"] @ at["factor"].T,
        total_count=PEOPLE,
        noise_variance=NOISE_VARIANCE,
    )
    return law.log_prob(total)


def dense_log_density(at: Parameters, total: Array) -> Array:
    """LDPBI equation 3: a normal law of all p (p + 1) / 2 products, by its covariance's Cholesky factor."""
    mean, second = _moments(at)
    i, j = np.triu_indices(len(mean))
    i, j = i[1:], j[1:]  # the product of the constant with itself is known
    weight = np.where(i == j, 1.0, np.sqrt(2.0))
    fourth = (
        second[i][:, i] * second[j][:, j]
        + second[i][:, j] * second[j][:, i]
        - 2 * jnp.outer(mean[i] * mean[j], mean[i] * mean[j])
    )
    covariance = PEOPLE * fourth * np.outer(weight, weight) + NOISE_VARIANCE * np.eye(len(i))
    factor = jnp.linalg.cholesky(covariance)
    white = solve_triangular(factor, weight * (total[i, j] - PEOPLE * second[i, j]), lower=True)
    log_det = 2 * jnp.log(jnp.diagonal(factor)).sum()
    return -(white @ white + log_det + len(i) * jnp.log(2 * jnp.pi)) / 2


def _moments(at: Parameters) -> tuple[Array, Array]:
    """Mean and second moments of v = (1, features, response)."""
    covariance = at["factor"] @ at["factor"].T
    slopes = at["coefficients"]
    cross = covariance @ slopes
    corner = jnp.block(
        [[covariance, cross[:, None]], [cross[None], (slopes @ cross + at["sd"] ** 2)[None, None]]]
    )
    mean = jnp.concatenate([jnp.ones(1), at["mean"], (at["intercept"] + slopes @ at["mean"])[None]])
    return mean, jnp.pad(corner, ((1, 0), (1, 0))) + jnp.outer(mean, mean)


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
    return at, PEOPLE * _moments(at)[1] + (noise + noise.T) / np.sqrt(2)


def _seconds(
    log_density: LogDensity,
    at: Parameters,
    total: Array,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """CPU seconds, or another clock's, of one compiled value and gradient, the best of several."""
    step = jax.jit(jax.value_and_grad(log_density))
    jax.block_until_ready(step(at, total))
    best = float("inf")
    for _ in range(5):
        start = clock()
        jax.block_until_ready(step(at, total))
        best = min(best, clock() - start)
    return best


def accelerator() -> Iterator[Row]:
    """Exact unary-encoded reports, n = 10⁶, k = 256: what JAX sees against the CPU."""
    what, target = "exact unary encoding, n = 10⁶, k = 256, accelerator", "≥ 20 times"
    if jax.default_backend() == "cpu":
        yield Row(what, "no accelerator", target, None)
        return
    bits = np.random.default_rng(0).random((1_000_000, 256)) < 0.27
    seconds = {}
    for platform in (jax.default_backend(), "cpu"):
        device = jax.devices(platform)[0]
        rows = jax.device_put(jnp.asarray(bits, jnp.float32), device)
        shares = jax.device_put(jnp.full(256, 1 / 256, jnp.float32), device)
        seconds[platform] = _seconds(_unary_rows, {"shares": shares}, rows, time.perf_counter)
    gain = seconds["cpu"] / seconds[jax.default_backend()]
    yield Row(what, f"a gradient {gain:.0f} times faster", target, gain >= 20)


def _unary_rows(at: Parameters, bits: Array) -> Array:
    return jnp.log1p(jnp.expm1(1.0) * (bits @ at["shares"])).sum()
