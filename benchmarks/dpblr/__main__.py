"""`python -m benchmarks.dpblr [--noise laplace] [--quick]`: DPBLR's ranks of the truth (figures 3 and 5)."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from benchmarks.dpblr.posteriors import METHODS, Drawn, Lengths, draws_of, methods_for
from benchmarks.dpblr.worlds import Matrix, Noise, World, draw_world, release
from benchmarks.running import COLOURS, add_sizes, headline, save, show_table, verdict

QUICK, TINY = Lengths((1000, 2500), (200, 400)), Lengths((20, 50), (20, 50), tables=2)
PARAMETERS = ("intercept", "slope", "variance")
# Posteriors whose p-values exceed it are called calibrated.
LIMIT = 0.01
Ranks = dict[str, dict[str, Matrix]]


def all_ranks(records: int, epsilon: float, noise: Noise, lengths: Lengths, methods: Sequence[str]) -> Ranks:
    """{method: {parameter: ranks (tables,)}}."""
    # The same tables for all ε and noises.
    randoms = np.random.default_rng([7, records]).spawn(lengths.tables)
    worlds = [draw_world(records, random) for random in randoms]
    noises = np.random.default_rng([8, records, round(1000 * epsilon)]).spawn(lengths.tables)
    releases = [release(w, epsilon, noise, r) for w, r in zip(worlds, noises, strict=True)]
    chosen = [method for method in methods_for(noise) if method in methods]
    return {method: ranks(draws_of(method, releases, lengths), worlds) for method in chosen}


def _print(found: Ranks) -> None:
    rows: list[list[object]] = []
    for method, parameters in found.items():
        # Kolmogorov-Smirnov distances of ranks from uniform, and their p-values.
        scores = [stats.kstest(parameters[name], "uniform") for name in PARAMETERS]
        rows.append([method, *(float(x) for score in scores for x in (score.statistic, score.pvalue))])
    show_table(["method", *(f"{text} {name}" for name in PARAMETERS for text in ("KS", "p"))], rows)
    good = [str(row[0]) for row in rows if all(float(str(p)) > LIMIT for p in row[2::2])]
    verdict(f"calibrated (p > {LIMIT} for all three): {', '.join(good) or 'none'}")


def _draw(found: dict[tuple[int, float], Ranks], tables: int) -> Figure:
    figure = Figure(figsize=(9, 2.8 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), len(PARAMETERS), squeeze=False)
    positions = (np.arange(tables) + 0.5) / tables
    for row, ((records, epsilon), methods) in zip(axes, found.items(), strict=True):
        for axis, name in zip(row, PARAMETERS, strict=True):
            axis.plot([0, 1], [0, 1], "--", color="#cccccc")
            for colour, (method, parameters) in zip((*COLOURS, "#b0b000"), methods.items(), strict=False):
                axis.plot(positions, np.sort(parameters[name]), color=colour, label=method, linewidth=1)
            axis.set(title=f"{name}, n = {records}, ε = {epsilon:g}", xlabel="position", ylabel="rank")
    axes[0][0].legend(fontsize=6, frameon=False)
    return figure


def ranks(drawn: Drawn, worlds: Sequence[World]) -> dict[str, Matrix]:
    """{parameter: share of each posterior's draws below the truth}: uniform if calibrated."""
    draws = (drawn.theta[..., 0], drawn.theta[..., 1], drawn.variance)
    truths = zip(*[(*world.theta, world.variance) for world in worlds], strict=True)
    return {
        name: (below < np.array(truth)[:, None]).mean(axis=1)
        for name, below, truth in zip(PARAMETERS, draws, truths, strict=True)
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the ranks against the number of records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", choices=["published", "laplace", "gaussian"], default="laplace")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    add_sizes(parser, "shorter chains")
    parser.add_argument("--out", type=Path, default=Path("dpblr-figures"), help="folder for the picture")
    given = parser.parse_args(argv)
    title = f"Figures 5 and 3: ranks of the truth against n ({given.noise} noise)"
    headline(title, "naive is the worst, the others are near uniform")
    start = time.process_time()
    lengths = given.size.of(Lengths(), QUICK, TINY)
    found = {}
    for records in given.size.of((10, 100, 1000), (10, 100, 1000), (10,)):
        ranks_of_methods = all_ranks(records, given.epsilon, given.noise, lengths, given.methods)
        found[records, given.epsilon] = ranks_of_methods
        print(f"\n  n = {records}, ε = {given.epsilon:g}, {lengths.tables} tables", flush=True)
        _print(ranks_of_methods)
    save(_draw(found, lengths.tables), given.out, f"by_records_{given.noise}")
    print(f"  {time.process_time() - start:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
