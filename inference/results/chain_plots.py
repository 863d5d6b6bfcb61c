"""How the chains of a fit mix: traces, and rank histograms (Vehtari et al. 2021, Bayesian Analysis 16(2))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from inference.results.plots import INCHES_WIDE, PRIOR, wrapped
from inference.results.posterior import Posterior

MOST_SHOWN = 6
BINS = 20
# Of the bins of independent draws, this share lies in the band.
INSIDE = 0.99
COLOURS = ("#1b5e9e", "#d9822b", "#1f7a4d", "#8e4585")

Draws = NDArray[np.float64]


@dataclass(frozen=True)
class Ranks:
    """Ranks of one parameter's draws among all chains' draws, in equal bins.

    counts (chains, bins): of each chain's ranks. expected: in each bin, where all chains draw from one law.
    low, high: the band of a bin's count then.
    """

    counts: NDArray[np.int64]
    expected: float
    low: float
    high: float


def ranks(draws: Draws) -> Ranks:
    """Rank histograms of draws (chains, draws) that vary.

    The band is that of independent draws; draws of one chain resemble each other, so that even chains that
    agree leave it somewhat more often.
    """
    each = draws.shape[1]
    pooled = stats.rankdata(draws, axis=None).reshape(draws.shape)
    edges = np.linspace(0.5, draws.size + 0.5, BINS + 1)
    counts = np.asarray([np.histogram(chain, edges)[0] for chain in pooled])
    low, high = (stats.binom.ppf(tail, each, 1 / BINS) for tail in ((1 - INSIDE) / 2, (1 + INSIDE) / 2))
    return Ranks(counts, each / BINS, float(low), float(high))


def worst_first(posterior: Posterior) -> list[str]:
    """Parameters that vary, the largest R-hat first and of equal ones the smallest bulk ESS; at most six."""
    found = posterior.diagnostics
    moving = [name for name, draws in posterior.draws.items() if np.ptp(draws) > 0]
    moving.sort(key=lambda name: (-found.r_hat[name], found.ess_bulk[name]))
    return moving[:MOST_SHOWN]


def chains_in_words(posterior: Posterior) -> str:
    """Which parameters the picture shows, and how to read it."""
    names, several = worst_first(posterior), len(posterior.draws)
    if not names:
        return "No parameter varies: there are no chains to show."
    which = "Every parameter" if len(names) == several else f"{len(names)} of {several} parameters"
    return (
        f"{which}, the worst mixing first. Left, every chain's draws in order: all should look like one "
        "band. Right, the ranks of every chain's draws among all draws: flat where the chains agree. Of "
        f"independent draws {100 * INSIDE:.0f} % of the bars end in the grey band, of draws that resemble "
        "the one before fewer; a slope or a hump is a chain that was elsewhere."
    )


def chains_plot(posterior: Posterior) -> Figure:
    """Traces and rank histograms of the parameters that mix worst; a colour a chain."""
    names = worst_first(posterior)
    figure = Figure(figsize=(INCHES_WIDE, 0.5 + 1.05 * max(len(names), 1)), layout="constrained")
    if not names:
        figure.text(0.5, 0.5, "no parameter varies", ha="center", color=PRIOR)
        return figure
    axes = figure.subplots(len(names), 2, squeeze=False, sharex="col", width_ratios=(3, 2))
    for (trace, rank), name in zip(axes, names, strict=True):
        _traces(trace, posterior.draws[name])
        _rank_bars(rank, ranks(posterior.draws[name]))
        trace.set_title(wrapped(name), parse_math=False, fontsize=7, loc="left")
        rank.set_title(f"R-hat {posterior.diagnostics.r_hat[name]:.3f}", fontsize=7, loc="left")
    axes[-1, 0].set_xlabel("draw", fontsize=7)
    axes[-1, 1].set_xlabel("rank among all draws", fontsize=7)
    return figure


def _traces(axis: Axes, draws: Draws) -> None:
    for chain, line in enumerate(draws):
        axis.plot(line, linewidth=0.35, alpha=0.8, color=COLOURS[chain % len(COLOURS)])
    axis.margins(x=0)
    axis.tick_params(labelsize=6)
    axis.spines[["right", "top"]].set_visible(False)


def _rank_bars(axis: Axes, found: Ranks) -> None:
    """A row of bars for each chain, the first on top; the band that bars should end in behind each row."""
    chains = len(found.counts)
    scale = 0.9 / max(float(found.counts.max()), found.high, 1.5 * found.expected)
    edges = np.linspace(0, 1, BINS + 1)
    for chain, counts in enumerate(found.counts):
        foot = chains - 1 - chain
        axis.axhspan(foot + found.low * scale, foot + found.high * scale, color=PRIOR, alpha=0.3, linewidth=0)
        colour = COLOURS[chain % len(COLOURS)]
        axis.stairs(foot + counts * scale, edges, baseline=foot, fill=True, color=colour, alpha=0.75)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, chains)
    axis.set_xticks([0, 0.5, 1], ["lowest", "", "highest"])
    axis.set_yticks([])
    axis.tick_params(labelsize=6)
    axis.spines[["left", "right", "top"]].set_visible(False)
