"""What a gradient of a likelihood that needs every report costs: CPU, memory and cores, by n and size.

python -m benchmarks.chunked_likelihood [--kind oue records …] [--n 20000] [--size 64]

`oue`: exact, in each report's set of `size` choices, packed. `records`: a logistic regression of perturbed
records of `size` features. Printed for each device that JAX has: CPU and wall seconds of one log density with
its gradient, in float64, the best of three, once compiled; what the compiled program needs beside the reports
(its temporaries); and the peak resident memory of a process that does only that, the compiler's included.
How many times one's gradients a second it gives from as many threads as there are cores: a fit's chains go
through the reports so.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks.running import cost_of
from inference.likelihoods import PackedSupportSets, perturbed_logistic_density
from inference.likelihoods.choices.supports import pack_sets
from inference.likelihoods.common import summed_in_chunks

KINDS = ("oue", "records")
# Of oue at ε = 1.
P, Q = 0.5, 1 / (1 + np.e)
AT_ONCE = 10_000
Gradient = Callable[[Array], tuple[Array, Array]]


def oue(n: int, size: int) -> tuple[Gradient, Array]:
    """Packed sets that nobody's answer is in more often."""
    random = np.random.default_rng(0)
    # In parts, so that the reports' making does not decide the memory.
    parts = [random.random((min(AT_ONCE, n - at), size)) < Q for at in range(0, n, AT_ONCE)]
    rows = np.concatenate([np.packbits(part, axis=1, bitorder="little") for part in parts])
    excess = jnp.asarray(P * (1 - Q) / (Q * (1 - P)) - 1)
    sets = pack_sets(rows)
    values, counts = jnp.asarray(sets.rows), jnp.asarray(sets.counts)

    def density(shares: Array) -> Array:
        law = PackedSupportSets(shares, jnp.log1p(excess), counts, validate_args=False)
        return law.log_prob(values)

    return jax.value_and_grad(density), jnp.full(size, 1 / size)


def records(n: int, size: int) -> tuple[Gradient, Array]:
    """Perturbed records with more noise than features."""
    random = np.random.default_rng(0)
    rows = jnp.asarray(np.column_stack([random.normal(0, 3, (n, size)), random.random(n) < 0.5]), float)

    def density(slopes: Array) -> Array:
        each = perturbed_logistic_density(
            slopes,
            jnp.asarray(0.1),
            jnp.zeros(size),
            jnp.eye(size) / size,
            feature_noise_sd=3.0,
            p=0.6,
            q=0.4,
        )
        return summed_in_chunks(each, rows)

    return jax.value_and_grad(density), jnp.full(size, 0.2)


class GradientCost(NamedTuple):
    """Of one log density with its gradient: CPU and wall seconds, seconds a gradient from all cores, MB."""

    cpu: float
    wall: float
    side_by_side: float
    temporaries: float
    value: float
    slope: float

    def __str__(self) -> str:
        gain = self.wall / self.side_by_side
        return (
            f"CPU {self.cpu:.4f} s, wall {self.wall:.4f} s, from all cores × {gain:.2f}; temporaries "
            f"{self.temporaries:,.1f} MB; log density {self.value:.6f}, |gradient| {self.slope:.6g}"
        )


def measured(kind: str, n: int, size: int, platform: str) -> str:
    """One row, in a process of its own: its peak, the largest resident memory, is of nothing else."""
    cost = gradient_cost(kind, n, size, platform)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{kind:8} n {n:>9,} size {size:>4} {platform:4}: {cost}; peak {peak:,.0f} MB"


def gradient_cost(kind: str, n: int, size: int, platform: str) -> GradientCost:
    """What a gradient costs, in a process in which JAX has not begun."""
    jax.config.update("jax_enable_x64", True)
    # How many reports go at once follows from the kind of device.
    if platform == "cpu":
        jax.config.update("jax_platforms", platform)
    gradient, start = (oue if kind == "oue" else records)(n, size)
    program: Any = jax.jit(gradient).lower(start).compile()
    value, slope = jax.block_until_ready(program(start))

    def call(*_: object) -> None:
        jax.block_until_ready(program(start))

    alone, cores = cost_of(call, 3), os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        together = cost_of(lambda: list(pool.map(call, range(cores))), 3).wall / cores
    needs = program.memory_analysis().temp_size_in_bytes / 1e6
    return GradientCost(*alone, together, needs, float(value), float(jnp.linalg.norm(slope)))


def accelerator() -> str | None:
    """The name of what JAX has beside the CPU; asked apart, as whoever asks takes most of its memory."""
    platform = apart(jax.default_backend)
    return None if platform == "cpu" else str(platform)


def apart(call: Callable[..., Any], *given: Any) -> Any:
    """What a call gives in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, given)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=64, help="choices, or features")
    given = parser.parse_args(argv)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    other = accelerator()
    for kind in given.kind:
        for platform in ("cpu", *([other] if other else [])):
            print(apart(measured, kind, given.n, given.size, platform), flush=True)
    if other is None:
        print("no accelerator here: JAX has the CPU alone, so that none can be held against it")


if __name__ == "__main__":
    main()
