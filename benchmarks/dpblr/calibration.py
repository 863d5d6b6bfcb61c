"""Figure 5, and the QQ plots of ranks (3): are posteriors calibrated?"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.dpblr.posteriors import Lengths, draws_of, methods_for
from benchmarks.dpblr.scores import PARAMETERS, ranks, uniformity
from benchmarks.dpblr.worlds import Matrix, Noise, draw_world, release
from benchmarks.running import COLOURS, save, show_table, verdict

# Posteriors whose p-values exceed it are called calibrated.
LIMIT = 0.01
Ranks = dict[str, dict[str, Matrix]]


def run_settings(
    settings: Sequence[tuple[int, float]],
    noise: Noise,
    lengths: Lengths,
    methods: Sequence[str],
    out: Path,
) -> None:
    """Print the Kolmogorov-Smirnov distances for each (records, ε), and draw the ranks."""
    found = {}
    for records, epsilon in settings:
        found[records, epsilon] = all_ranks(records, epsilon, noise, lengths, methods)
        print(f"\n  n = {records}, ε = {epsilon:g}, {lengths.tables} tables", flush=True)
        _print(found[records, epsilon])
    save(_draw(found, lengths.tables), out, f"by_records_{noise}")


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
        scores = [uniformity(parameters[name]) for name in PARAMETERS]
        rows.append([method, *(value for score in scores for value in score)])
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
