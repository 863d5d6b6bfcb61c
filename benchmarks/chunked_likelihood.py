"""What a gradient of a likelihood that needs every report costs: CPU, memory and devices, by n and size.

python -m benchmarks.chunked_likelihood [--n 20000] [--size 64]

Exact `oue`: each report's set of `size` choices, packed. Printed for each device that JAX has: CPU and wall
seconds of one log density with its gradient, in float64, the best of three, once compiled; what the compiled
program needs beside the reports (its temporaries); and the peak resident memory of a process that does only
that, the compiler's included.
"""

import argparse
import multiprocessing
import os
import resource
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks.running import cost_of
from inference.likelihoods import PackedSupportSets
from inference.likelihoods.choices.supports import pack_sets

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
        law = PackedSupportSets(shares, jnp.log1p(excess), counts)
        return law.log_prob(values)

    return jax.value_and_grad(density), jnp.full(size, 1 / size)


def measured(n: int, size: int, platform: str) -> str:
    """One row, in a process of its own: its peak, the largest resident memory, is of nothing else."""
    jax.config.update("jax_enable_x64", True)
    # How many reports go at once follows from the kind of device.
    if platform == "cpu":
        jax.config.update("jax_platforms", platform)
    gradient, start = oue(n, size)
    program: Any = jax.jit(gradient).lower(start).compile()
    value, slope = jax.block_until_ready(program(start))
    cost = cost_of(lambda: jax.block_until_ready(program(start)), 3)
    needs = program.memory_analysis().temp_size_in_bytes / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"oue n {n:>9,} size {size:>4} {platform:4}: CPU {cost.cpu:.4f} s, wall {cost.wall:.4f} s; "
        f"temporaries {needs:,.1f} MB; log density {value:.6f}, |gradient| {jnp.linalg.norm(slope):.6g}; "
        f"peak {peak:,.0f} MB"
    )


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
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=64, help="choices")
    given = parser.parse_args(argv)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    other = accelerator()
    for platform in ("cpu", *([other] if other else [])):
        print(apart(measured, given.n, given.size, platform), flush=True)
    if other is None:
        print("no accelerator here: JAX has the CPU alone, so that none can be held against it")


if __name__ == "__main__":
    main()
