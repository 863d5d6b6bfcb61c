"""What a gradient of a likelihood that needs every report costs: CPU, memory and cores, by n and size.

python -m benchmarks.chunked_likelihood [--kind oue records …] [--n 20000] [--size 64] [--at-once]

`oue`: exact, in each report's set of `size` choices, packed. `records`: a logistic regression of perturbed
records of `size` features. Printed for each device that JAX has: CPU and wall seconds of one log density with
its gradient, in float64, the best of three, once compiled; what the compiled program needs beside the reports
(its temporaries); and the peak resident memory of a process that does only that, the compiler's included.
How many times one's gradients a second it gives from as many threads as there are cores: a fit's chains go
through the reports so. --at-once: also without chunks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.likelihoods import PackedSupportSets, PerturbedLogisticRecords
from inference.likelihoods.choices.supports import pack_sets

KINDS = ("oue", "records")
# Of oue at ε = 1.
P, Q = 0.5, 1 / (1 + np.e)
AT_ONCE = 10_000
Gradient = Callable[[Array], tuple[Array, Array]]


def oue(n: int, size: int, at_once: bool) -> tuple[Gradient, Array]:
    """Packed sets that nobody's answer is in more often; at once: unpacked, in one matrix."""
    random = np.random.default_rng(0)
    # In parts, so that the reports' making does not decide the memory.
    parts = [random.random((min(AT_ONCE, n - at), size)) < Q for at in range(0, n, AT_ONCE)]
    rows = np.concatenate([np.packbits(part, axis=1, bitorder="little") for part in parts])
    excess = jnp.asarray(P * (1 - Q) / (Q * (1 - P)) - 1)
    if at_once:
        bits = jnp.asarray(np.unpackbits(rows, axis=1, bitorder="little", count=size), float)
        return jax.value_and_grad(lambda shares: jnp.sum(jnp.log1p(excess * (bits @ shares)))), _shares(size)
    sets = pack_sets(rows)
    values, counts = jnp.asarray(sets.rows), jnp.asarray(sets.counts)

    def density(shares: Array) -> Array:
        law = PackedSupportSets(shares, jnp.log1p(excess), counts, validate_args=False)
        return law.log_prob(values)

    return jax.value_and_grad(density), _shares(size)


def _shares(size: int) -> Array:
    return jnp.full(size, 1 / size)


def records(n: int, size: int, at_once: bool) -> tuple[Gradient, Array]:
    """Perturbed records with more noise than features."""
    random = np.random.default_rng(0)
    rows = jnp.asarray(np.column_stack([random.normal(0, 3, (n, size)), random.random(n) < 0.5]), float)

    def density(slopes: Array) -> Array:
        law = PerturbedLogisticRecords(
            slopes,
            jnp.asarray(0.1),
            jnp.zeros(size),
            jnp.eye(size) / size,
            feature_noise_sd=3.0,
            p=0.6,
            q=0.4,
            validate_args=False,
        )
        return jnp.sum(law.log_prob(rows)) if at_once else law.summed_log_prob(rows)

    return jax.value_and_grad(density), jnp.full(size, 0.2)


def measured(kind: str, n: int, size: int, at_once: bool, platform: str) -> str:
    """One row, in a process of its own: its peak is of nothing else."""
    jax.config.update("jax_enable_x64", True)
    with jax.default_device(jax.devices(platform)[0]):
        gradient, start = (oue if kind == "oue" else records)(n, size, at_once)
        program: Any = jax.jit(gradient).lower(start).compile()
        best = (np.inf, np.inf)
        for _ in range(3):
            began = time.process_time(), time.perf_counter()
            value, slope = jax.block_until_ready(program(start))
            best = min(best, (time.process_time() - began[0], time.perf_counter() - began[1]))
        gain = best[1] * (os.cpu_count() or 1) / side_by_side(lambda: jax.block_until_ready(program(start)))
        needs = program.memory_analysis().temp_size_in_bytes / 1e6
    told = f"log density {float(value):.6f}, |gradient| {float(jnp.linalg.norm(slope)):.6g}"
    return (
        f"{kind:8} n {n:>9,} size {size:>4} {platform:4} {'at once' if at_once else 'chunks ':7}: "
        f"CPU {best[0]:.3f} s, wall {best[1]:.3f} s, from all cores × {gain:.2f}; "
        f"temporaries {needs:,.1f} MB, peak {_peak():,.0f} MB; {told}"
    )


def side_by_side(program: Callable[[], object]) -> float:
    """Seconds, the best of three, in which each core's thread calls it once."""
    cores, best = os.cpu_count() or 1, np.inf
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(3):
            began = time.perf_counter()
            list(pool.map(lambda _: program(), range(cores)))
            best = min(best, time.perf_counter() - began)
    return float(best)


def _peak() -> float:
    """The largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def accelerator() -> str | None:
    """The name of what JAX has beside the CPU."""
    platform = jax.default_backend()
    return None if platform == "cpu" else platform


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=64, help="choices, or features")
    parser.add_argument("--at-once", action="store_true")
    given = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    spawned = multiprocessing.get_context("spawn")
    other = accelerator()
    for kind in given.kind:
        for platform in ("cpu", *([other] if other else [])):
            for at_once in (False, True) if given.at_once else (False,):
                with spawned.Pool(1) as pool:
                    row = (kind, given.n, given.size, at_once, platform)
                    print(pool.apply(measured, row), flush=True)
    if other is None:
        print("no accelerator here: JAX has the CPU alone, so that none can be held against it")


if __name__ == "__main__":
    main()
