"""Tables 1 and 2: mean squared prediction error on real data, ε = 1, with its 90 % interval over runs."""

from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.ddplr.constants import Constants
from benchmarks.ddplr.estimates import METHODS, OURS, PUBLISHED, draws_of, split_r_hat
from benchmarks.ddplr.published import INTERVALS, MEANS
from benchmarks.ddplr.releases import Setting, paper_prior
from benchmarks.ddplr.tables import FILES, real
from benchmarks.running import Size, headline, show_table, verdict

HOLDERS = (1, 5, 10)
# Chains whose halves disagree more than this had not converged.
MOST_R_HAT = 1.05


class Scored(NamedTuple):
    """errors: (runs,) mean squared errors of prediction. stuck: share of chains that had not converged."""

    errors: np.ndarray
    stuck: float

    @property
    def interval(self) -> tuple[float, float]:
        """90 %, of the mean over runs."""
        reach = stats.norm.ppf(0.95) * self.errors.std(ddof=1) / np.sqrt(len(self.errors))
        return float(self.errors.mean() - reach), float(self.errors.mean() + reach)


class Asked(NamedTuple):
    """Which cells, how often each table is released, how long chains are, and by which methods."""

    datasets: list[str]
    holders: tuple[int, ...]
    runs: int
    size: Size
    methods: tuple[str, ...] = METHODS


def run(numbers: list[str], constants: Constants, asked: Asked) -> None:
    """Print Table 1 (means), 2 (intervals) or both, ours beside theirs."""
    headline(
        f"Table {' and '.join(numbers)}: prediction error, ε = 1, {asked.runs} runs, {constants} constants",
        "MCMC-fixedS and Bayes-fixedS-fast are the most stable, and better than the last two for J > 1",
    )
    at_least_as_good: dict[str, list[bool]] = {name: [] for name in OURS if name in asked.methods}
    for dataset in asked.datasets:
        for holders in asked.holders:
            cell = score(dataset, holders, constants, asked.runs, asked.size, asked.methods)
            rows = [row for number in numbers for row in rows_of(number, dataset, holders, cell)]
            stuck = [f"{found.stuck:.0%}" if found.stuck else "" for found in cell.values()]
            show_table([f"{dataset}, J = {holders}", *cell], [*rows, ["not converged", *stuck]])
            for name, found in at_least_as_good.items():
                found.append(as_good(name, cell))
    for name, found in at_least_as_good.items():
        verdict(
            f"{name} predicts at least as well as the best published method in {sum(found)} of {len(found)} "
            "cells"
        )


def score(
    dataset: str,
    holders: int,
    constants: Constants,
    runs: int,
    size: Size,
    methods: tuple[str, ...] = METHODS,
) -> dict[str, Scored]:
    """Every method's errors in one cell."""
    trained, test = real(dataset)
    root = np.random.default_rng(0).normal(size=(trained.x.shape[1],) * 2)
    setting = Setting(
        *(trained, holders, 1.0, constants, paper_prior(root.T @ root), runs),
        iterations=size.of(10_000, 2000, 100),
        nuts=size.of(1000, 500, 50),
    )
    cell = {}
    for method in methods:
        draws = draws_of(method, setting)
        errors = np.mean((test.y - draws.mean(1) @ test.x.T) ** 2, axis=1)
        stuck = np.mean(split_r_hat(draws) > MOST_R_HAT) if draws.shape[1] > 1 else 0.0
        cell[method] = Scored(errors, float(stuck))
    return cell


def rows_of(number: str, dataset: str, holders: int, cell: dict[str, Scored]) -> list[list[object]]:
    """What the paper prints, and what was found here."""
    key = dataset, holders
    if number == "1":
        means = dict(zip(PUBLISHED, MEANS[key], strict=True))
        here = [float(found.errors.mean()) for found in cell.values()]
        return [["published", *(means.get(name, "") for name in cell)], ["here", *here]]
    intervals = dict(zip(PUBLISHED, map(interval, INTERVALS[key]), strict=True))
    return [
        ["published", *(intervals.get(name, "") for name in cell)],
        ["here", *(interval(found.interval) for found in cell.values())],
    ]


def interval(pair: tuple[float, float]) -> str:
    """As the paper prints it."""
    return f"{pair[0]:.4f}–{pair[1]:.4f}"


def as_good(ours: str, cell: dict[str, Scored]) -> bool:
    """Whether our interval is not above that of the published method with the smallest mean."""
    best = min((cell[name] for name in PUBLISHED if name in cell), key=lambda found: found.errors.mean())
    return cell[ours].interval[0] <= best.interval[1]


def present() -> list[str]:
    """Data sets whose files are there; says what to download for the others."""
    found = []
    for name in FILES:
        try:
            real(name)
            found.append(name)
        except SystemExit as missing:
            print(f"  without {name}: {missing}")
    return found
