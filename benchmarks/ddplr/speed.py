"""Figure 3: seconds an iteration against the number of features, and effective draws per second."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from numpyro.diagnostics import effective_sample_size

from benchmarks.ddplr.constants import svec_noise
from benchmarks.ddplr.estimates import KERNELS
from benchmarks.ddplr.releases import Setting, paper_prior, releases
from benchmarks.ddplr.tables import simulated
from benchmarks.papers.marginal import conjugate_model
from benchmarks.running import COLOURS, Size, headline, save, show_table, verdict
from inference.published.base import Run, run_kernel
from inference.published.mcmc_fixeds import released
from inference.sampling import Sampled, sample
from inference.sampling.space import as_arrays, space_of

ENOUGH, REPEATS = 0.1, 9
METHODS = ("mcmc_normalx", "mcmc_fixeds", "mcmc_bs", "marginal")
# Each of the others takes seconds to compile.
TINY = ("mcmc_fixeds", "marginal")
# A matrix of mcmc_bs has about d⁴ / 4 entries.
WIDEST_BS = 50


def run(out: Path, size: Size) -> None:
    """Print and draw it; `marginal` per gradient, the others per iteration."""
    headline(
        "Figure 3: seconds an iteration against d, J = 1 (marginal: a log-density with its gradient)",
        "about 8e-4 s, 1.5e-4 s and 0.02 s at the largest d of its panels; MCMC-B&S grows as d⁶",
    )
    with jax.enable_x64(True):
        rows = times(size)
        at = [row for row in rows if row[0] <= WIDEST_BS][-1]
        verdict(f"d = {at[0]}: mcmc_bs takes {at[-1]:.0f} times as long as marginal (target at 50: 100)")
        save(draw(rows), out, "figure_3")
        effective(size)


def times(size: Size) -> list[list[float]]:
    """Rows of d, seconds of each method, and how many times marginal's mcmc_bs takes."""
    dimensions = size.of((2, 5, 10, 20, 50, 100), (2, 5, 10, 20, 50), (2,))
    timed, enough = size.of(METHODS, METHODS, TINY), size.of(ENOUGH, ENOUGH, ENOUGH / 100)
    rows: list[list[float]] = []
    for d in dimensions:
        setting = one_release(d)
        seconds = [
            seconds_of(name, setting, enough)
            if name in timed and (name != "mcmc_bs" or d <= WIDEST_BS)
            else float("nan")
            for name in METHODS
        ]
        rows.append([d, *seconds, seconds[2] / seconds[3]])
        show_table(["d", *METHODS, "mcmc_bs / marginal"], rows[-1:])
    return rows


def one_release(d: int, holders: int = 1) -> Setting:
    """A simulated table of d features, released once."""
    made = simulated(100_000, d, seed=d)
    return Setting(made.table, holders, 1.0, "right", paper_prior(made.scatter), runs=1)


def seconds_of(name: str, setting: Setting, enough: float) -> float:
    """One iteration, or one gradient, within a compiled loop that takes so many seconds."""
    if name == "marginal":
        return gradient_seconds(setting, enough)
    kernel, noise_of = KERNELS[name]
    data = jax.tree.map(np.asarray, released(releases(setting, noise_of)[0], setting.prior))
    key = jax.random.key(0)

    def step(index: Any, state: Any) -> Any:
        return kernel.step(jax.random.fold_in(key, index), state, data)

    return loop_seconds(step, jax.jit(kernel.init)(key, data), enough)


def gradient_seconds(setting: Setting, enough: float) -> float:
    """Of marginal's log-density with its gradient, on its own mechanism's statistics."""
    model = conjugate_model(releases(setting, svec_noise)[0], setting.prior)
    space, data = space_of(model), as_arrays(model.data)
    slope = jax.value_and_grad(lambda vector: space.potential(vector, data))

    def step(_: Any, vector: Any) -> Any:
        value, gradient = slope(vector)
        # Nothing moves, but no compiler may know it.
        return vector + 1e-300 * gradient * value

    return loop_seconds(step, space.start(as_arrays(model.initial, float), data), enough)


def loop_seconds(step: Callable[[Any, Any], Any], state: Any, enough: float) -> float:
    """Seconds a step, in loops long enough to time: the best of several, as other work only adds."""
    loop = jax.jit(lambda steps, state: jax.lax.fori_loop(0, steps, step, state))

    def seconds(steps: int) -> float:
        start = time.perf_counter()
        jax.block_until_ready(loop(steps, state))
        return (time.perf_counter() - start) / steps

    seconds(1)
    steps = max(1, int(enough / min(seconds(1), seconds(10))))
    return min(seconds(steps) for _ in range(REPEATS))


def effective(size: Size) -> None:
    """Effective draws of θ per second, J = 10, d = 10: whole runs of four chains, compilation included."""
    many = size.of(10, 10, 2)
    setting = one_release(many, holders=many)
    steps = size.of(30_000, 5_000, 400)
    published = size.of("mcmc_normalx", "mcmc_normalx", "mcmc_fixeds")
    kernel, noise_of = KERNELS[published]
    data = released(releases(setting, noise_of)[0], setting.prior, steps // 2)
    arrays = jax.tree.map(np.asarray, data)
    rate = rate_of(lambda: run_kernel(kernel, arrays, Run(0, steps // 2, steps // 20, thin=10)))
    model = conjugate_model(releases(setting, svec_noise)[0], setting.prior)
    our_rate = rate_of(lambda: sample(model, seed=0))
    show_table(
        [f"J = {many}, d = {many}", "effective draws of θ a second"],
        [[published, rate], ["marginal", our_rate]],
    )
    verdict(f"marginal makes {our_rate / rate:.1f} times as many effective draws a second (target: 5)")


def rate_of(draw: Callable[[], Sampled]) -> float:
    """Effective draws a second of the worst coordinate of θ."""
    start = time.perf_counter()
    theta = draw().sites["theta"]
    taken = time.perf_counter() - start
    return min(float(effective_sample_size(theta[..., k])) for k in range(theta.shape[-1])) / taken


def draw(rows: list[list[float]]) -> Figure:
    """Seconds against d, both on logarithmic scales."""
    figure = Figure(figsize=(4.8, 3.2), layout="constrained")
    axis = figure.subplots()
    for column, (colour, name) in enumerate(zip(COLOURS, METHODS, strict=False), start=1):
        axis.loglog([row[0] for row in rows], [row[column] for row in rows], ".-", color=colour, label=name)
    axis.set(xlabel="features", ylabel="seconds")
    axis.legend(fontsize=7, frameon=False)
    return figure
