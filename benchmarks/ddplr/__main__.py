"""`python -m benchmarks.ddplr [--table 1|2] …`: DDPLR's prediction errors on real data, ours beside theirs.

Table 1 has means of squared errors, table 2 their 90 % intervals over runs.
"""

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.ddplr.constants import Constants
from benchmarks.ddplr.estimates import METHODS, OURS, PUBLISHED, draws_of, split_r_hat
from benchmarks.ddplr.published import INTERVALS, MEANS
from benchmarks.ddplr.releases import FILES, Setting, paper_prior, real
from benchmarks.running import add_sizes, headline, show_table, verdict

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


def run(given: argparse.Namespace, constants: Constants, datasets: Sequence[str]) -> None:
    """Print Table 1 (means), 2 (intervals) or both, ours beside theirs."""
    numbers = given.table or ["1", "2"]
    headline(
        f"Table {' and '.join(numbers)}: prediction error, ε = 1, {given.runs} runs, {constants} constants",
        "MCMC-fixedS and Bayes-fixedS-fast are the most stable, and better than the last two for J > 1",
    )
    at_least_as_good: dict[str, list[bool]] = {name: [] for name in OURS if name in given.methods}
    for dataset in datasets:
        for holders in given.holders or HOLDERS:
            cell = score(dataset, holders, constants, given)
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


def score(dataset: str, holders: int, constants: Constants, given: argparse.Namespace) -> dict[str, Scored]:
    """Every method's errors in one cell."""
    trained, test = real(dataset)
    root = np.random.default_rng(0).normal(size=(trained.x.shape[1],) * 2)
    setting = Setting(
        *(trained, holders, 1.0, constants, paper_prior(root.T @ root), given.runs),
        iterations=given.size.of(10_000, 2000, 100),
        nuts=given.size.of(1000, 500, 50),
    )
    cell = {}
    for method in given.methods:
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


def main(argv: Sequence[str] | None = None) -> None:
    """Repeat the tables that were asked for, or both."""
    given = parse(argv)
    start = time.perf_counter()
    datasets = given.data or present()
    if not datasets:
        raise SystemExit("without data there are no tables to repeat: see above, and set LDPKIT_DATA")
    for constants in given.constants or ("published", "right"):
        run(given, constants, datasets)
    print(f"  {time.perf_counter() - start:.0f} s", flush=True)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="append", choices=("1", "2"), help="1: means, 2: 90 %% intervals")
    parser.add_argument("--runs", type=int, default=50, help="releases of each table; two or more")
    parser.add_argument(
        "--constants",
        action="append",
        choices=("published", "right"),
        help="sensitivities and noise as published, or right ones; both by default",
    )
    parser.add_argument("--data", action="append", choices=tuple(FILES), help="all by default")
    parser.add_argument("--holders", type=int, action="append", choices=HOLDERS, help="all by default")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="all by default")
    add_sizes(parser, "shorter chains")
    given = parser.parse_args(argv)
    if given.runs < 2:
        parser.error("--runs must be 2 or more: an interval needs them")
    if "marginal" not in given.methods or not set(PUBLISHED) & set(given.methods):
        parser.error("--methods: marginal is held against one of the paper's at least")
    return given


if __name__ == "__main__":
    main()
