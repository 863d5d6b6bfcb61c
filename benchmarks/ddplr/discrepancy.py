"""Figure 4: squared maximum mean discrepancy between private posteriors and the non-private one, d = 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Constants
from benchmarks.ddplr.estimates import PUBLISHED, SAME_PRIOR, draws_of
from benchmarks.ddplr.releases import NUTS, Setting, paper_prior
from benchmarks.ddplr.tables import Simulated, simulated
from benchmarks.running import COLOURS, Size, headline, save, show_table, verdict
from inference.published.conjugate import ConjugatePrior

Matrix = NDArray[np.float64]
# The released code's kernel: exp(−‖a − b‖² / (2 · 0.1)).
WIDTH = 0.1
DRAWS = 500
# adaSSP is a point, and posteriors under another prior do not come to the non-private one.
WITH_POSTERIOR = tuple(name for name in PUBLISHED if name != "ada_ssp")


def run(out: Path, constants: Constants, runs: int, size: Size, methods: tuple[str, ...]) -> None:
    """Print and draw it."""
    headline(
        f"Figure 4: MMD² to the non-private posterior, n = 10⁵, d = 2, {runs} runs, {constants} constants",
        "all methods come to the non-private posterior as ε grows",
    )
    methods = (*(name for name in WITH_POSTERIOR if name in methods), SAME_PRIOR)
    epsilons = size.of((0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), (0.1, 1.0, 10.0), (1.0,))
    holders = size.of((1, 5, 10), (5,), (1,))
    made = simulated(size.of(100_000, 100_000, 500), 2, seed=2)
    prior = paper_prior(made.scatter)
    plain = without_privacy(made, prior)
    found = {}
    for count in holders:
        for epsilon in epsilons:
            setting = Setting(
                *(made.table, count, epsilon, constants, prior, runs),
                iterations=size.of(10_000, 2000, 100),
                nuts=size.of(NUTS, NUTS, 50),
            )
            for method in methods:
                found[count, epsilon, method] = float(
                    np.mean([mmd(plain, each) for each in draws_of(method, setting)])
                )
        rows = [[epsilon, *(found[count, epsilon, name] for name in methods)] for epsilon in epsilons]
        show_table([f"J = {count}, ε", *methods], rows)
    falling = [
        name
        for name in methods
        if all(found[count, epsilons[-1], name] < found[count, epsilons[0], name] for count in holders)
    ]
    verdict(f"falls from the smallest to the largest ε for {', '.join(falling)}")
    save(draw(found, methods, holders, epsilons), out, "figure_4")


def without_privacy(made: Simulated, prior: ConjugatePrior) -> Matrix:
    """Draws of θ given the table itself: normal-inverse-gamma, σ² times the prior's covariance."""
    random, x, y = np.random.default_rng(0), made.table.x, made.table.y
    precision = x.T @ x + np.linalg.inv(prior.theta_covariance)
    mean = np.linalg.solve(precision, x.T @ y)
    rate = float(prior.rate) + (y @ y - mean @ precision @ mean) / 2
    variance = rate / random.gamma(float(prior.shape) + len(y) / 2, size=(DRAWS, 1))
    noise = random.multivariate_normal(np.zeros(len(mean)), np.linalg.inv(precision), DRAWS)
    return np.asarray(mean + np.sqrt(variance) * noise)


def mmd(first: Matrix, second: Matrix) -> float:
    """Unbiased estimate of MMD² from draws (k, d) of each (Gretton et al. 2012)."""
    second = second[:: max(1, len(second) // DRAWS)]

    def kernel(a: Matrix, b: Matrix) -> Matrix:
        return np.asarray(np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / (2 * WIDTH)))

    def apart(draws: Matrix) -> float:
        count = len(draws)
        return float((kernel(draws, draws).sum() - count) / (count * (count - 1)))

    return apart(first) + apart(second) - 2 * float(kernel(first, second).mean())


def draw(
    found: dict[tuple[int, float, str], float],
    methods: tuple[str, ...],
    holders: tuple[int, ...],
    epsilons: tuple[float, ...],
) -> Figure:
    """MMD² against ε, a panel for each J."""
    figure = Figure(figsize=(3.2 * len(holders), 2.8), layout="constrained")
    for axis, count in zip(figure.subplots(1, len(holders), squeeze=False)[0], holders, strict=True):
        for colour, name in zip(COLOURS, methods, strict=False):
            values = [found[count, epsilon, name] for epsilon in epsilons]
            axis.semilogx(epsilons, values, ".-", color=colour, label=name)
        axis.set(title=f"J = {count}", xlabel="ε", ylabel="MMD²")
    figure.axes[0].legend(fontsize=6, frameon=False)
    return figure
