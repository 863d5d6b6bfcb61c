"""Figure 2: mean squared error of θ and of predictions against ε, d = 2 and 5, simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.ddplr.constants import Constants
from benchmarks.ddplr.estimates import draws_of, split_r_hat
from benchmarks.ddplr.prediction import MOST_R_HAT
from benchmarks.ddplr.releases import NUTS, Setting, paper_prior
from benchmarks.ddplr.tables import simulated
from benchmarks.running import COLOURS, Size, headline, save, show_table, verdict

Errors = dict[tuple[int, int, float, str], tuple[float, float]]


def run(out: Path, constants: Constants, runs: int, size: Size, methods: tuple[str, ...]) -> None:
    """Print and draw it."""
    headline(
        f"Figure 2: error of θ and of predictions against ε, n = 10⁵, {runs} runs, {constants} constants",
        "fixed S is better than adaSSP and MCMC-B&S nearly always; all improve with ε",
    )
    dimensions, holders = size.of((2, 5), (2, 5), (2,)), size.of((1, 5, 10), (5,), (1,))
    epsilons = size.of((0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), (0.1, 1.0, 10.0), (1.0,))
    found: Errors = {}
    for d in dimensions:
        for count in holders:
            rows = [row(d, count, epsilon, constants, runs, size, methods, found) for epsilon in epsilons]
            show_table([f"d = {d}, J = {count}", *methods], [line for pair in rows for line in pair])
    best = sum(
        found[d, count, epsilon, "marginal"][0]
        <= min(found[d, count, epsilon, name][0] for name in methods if not name.startswith("marginal"))
        for d in dimensions
        for count in holders
        for epsilon in epsilons
    )
    verdict(f"marginal has the smallest error of θ in {best} of {len(found) // len(methods)} settings")
    save(draw(found, methods, dimensions, holders, epsilons), out, "figure_2")


def row(
    d: int,
    holders: int,
    epsilon: float,
    constants: Constants,
    runs: int,
    size: Size,
    methods: tuple[str, ...],
    found: Errors,
) -> list[list[object]]:
    """One ε: errors of estimates, and of predictions on average over draws, as the released code has it."""
    made = simulated(size.of(100_000, 100_000, 500), d, seed=d)
    setting = Setting(
        *(made.table, holders, epsilon, constants, paper_prior(made.scatter), runs),
        iterations=size.of(10_000, 2000, 100),
        nuts=size.of(NUTS, NUTS, 50),
    )
    lines: list[list[object]] = [[f"ε = {epsilon:g}: θ"], ["prediction"], ["not converged"]]
    for method in methods:
        draws = draws_of(method, setting) - made.theta
        estimate = float(np.mean(draws.mean(1) ** 2))
        predicted = float(np.einsum("rki,ij,rkj->rk", draws, made.covariance, draws).mean())
        found[d, holders, epsilon, method] = estimate, predicted
        stuck = float(np.mean(split_r_hat(draws) > MOST_R_HAT)) if draws.shape[1] > 1 else 0.0
        for line, cell in zip(lines, (estimate, predicted, f"{stuck:.0%}" if stuck else ""), strict=True):
            line.append(cell)
    return lines


def draw(
    found: Errors,
    methods: tuple[str, ...],
    dimensions: tuple[int, ...],
    holders: tuple[int, ...],
    epsilons: tuple[float, ...],
) -> Figure:
    """Error of θ against ε, a panel for each d and J."""
    figure = Figure(figsize=(3.2 * len(holders), 2.8 * len(dimensions)), layout="constrained")
    panels = figure.subplots(len(dimensions), len(holders), squeeze=False)
    for (line, d), (column, count) in ((a, b) for a in enumerate(dimensions) for b in enumerate(holders)):
        axis = panels[line][column]
        for colour, method in zip(COLOURS, methods, strict=False):
            values = [found[d, count, epsilon, method][0] for epsilon in epsilons]
            axis.loglog(epsilons, values, ".-", color=colour, label=method)
        axis.set(title=f"d = {d}, J = {count}", xlabel="ε", ylabel="squared error of θ")
    panels[0][0].legend(fontsize=6, frameon=False)
    return figure
