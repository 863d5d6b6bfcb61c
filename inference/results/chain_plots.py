"""Traces and rank histograms, which show how chains mix (Vehtari et al. 2021, Bayesian Analysis 16(2))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from inference.results.figures import limits, sized, styled, without_side
from inference.results.plot_parameters import PRIOR, wrapped
from inference.results.posterior import Posterior
from inference.tail_probabilities import average_ranks, binomial_quantile

MOST_SHOWN = 6
BINS = 20
# The share of bins within the band for independent draws.
INSIDE = 0.99
COLOURS = ("#1b5e9e", "#d9822b", "#1f7a4d", "#8e4585")

Traces = NDArray[np.float64]


@dataclass(frozen=True)
class Ranks:
    """Ranks of one parameter's draws among all chains' draws, in equal bins.

    counts (chains, bins): of each chain's ranks. expected: a bin's count if all chains draw from one law.
    low, high: the band of a bin's count in that case.
    """

    counts: NDArray[np.int64]
    expected: float
    low: float
    high: float


def ranks(draws: Traces) -> Ranks:
    """Return rank histograms of draws (chains, draws) that vary.

    The band assumes independent draws. Draws of one chain are correlated, so even chains that agree leave the
    band somewhat more often.
    """
    each = draws.shape[1]
    pooled = average_ranks(draws)
    edges = np.linspace(0.5, draws.size + 0.5, BINS + 1)
    counts = np.asarray([np.histogram(chain, edges)[0] for chain in pooled])
    low, high = (binomial_quantile(tail, each, 1 / BINS) for tail in ((1 - INSIDE) / 2, (1 + INSIDE) / 2))
    return Ranks(counts, each / BINS, float(low), float(high))


def worst_first(posterior: Posterior) -> list[str]:
    """Return at most six parameters that vary, by falling R-hat and, if equal, by rising bulk ESS."""
    found = posterior.diagnostics
    moving = [name for name, draws in posterior.draws.items() if np.ptp(draws) > 0]
    moving.sort(key=lambda name: (-found.r_hat[name], found.ess_bulk[name]))
    return moving[:MOST_SHOWN]


CHAINS_IN_WORDS = (
    "Pictures of chains show the six parameters that mix worst. Left, every chain's draws in order: all "
    "should look like one band. Right, their ranks among all draws: flat where chains agree. Of "
    f"independent draws {100 * INSIDE:.0f} % of the bars end in the grey band; a slope or a hump is a chain "
    "that was elsewhere."
)
# The height in points of a parameter's row.
ROW = 78.0


@styled
def chains_plot(posterior: Posterior) -> Figure:
    """Draw traces and rank histograms of the parameters that mix worst, with one colour for each chain."""
    names = worst_first(posterior)
    if not names:
        figure = sized(ROW)
        figure.text(0.5, 0.5, "no parameter varies", ha="center", va="center", size=9, color=PRIOR)
        return figure
    figure = sized(ROW * len(names) + 20)
    panels = figure.subplots(len(names), 2, squeeze=False, width_ratios=(8, 5))
    for (trace, bars), name in zip(panels, names, strict=True):
        last = name == names[-1]
        _traces(trace, name, posterior.draws[name])
        _rank_bars(bars, ranks(posterior.draws[name]))
        bars.set_title(f"R-hat {posterior.diagnostics.r_hat[name]:.3f}", loc="left", pad=3)
        for axes, words in ((trace, "draw"), (bars, "rank among all draws")):
            axes.tick_params(labelbottom=last)
            axes.set_xlabel(words if last else "")
    return figure


def _traces(axes: Axes, name: str, draws: Traces) -> None:
    for chain, line in enumerate(draws):
        axes.plot(line, color=COLOURS[chain % len(COLOURS)], linewidth=0.35, alpha=0.8)
    axes.set_xlim(0.0, max(draws.shape[1] - 1.0, 1.0))
    axes.set_ylim(*limits(draws))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_title(wrapped(name), loc="left", pad=3)


def _rank_bars(axes: Axes, found: Ranks) -> None:
    """Draw a row of bars for each chain, the first on top, with the band behind in which bars should end."""
    chains = len(found.counts)
    scale = 0.9 / max(float(found.counts.max()), found.high, 1.5 * found.expected)
    edges = np.linspace(0, 1, BINS + 1)
    for chain, counts in enumerate(found.counts):
        foot = chains - 1 - chain
        axes.axhspan(foot + found.low * scale, foot + found.high * scale, color=PRIOR, alpha=0.3, linewidth=0)
        colour = COLOURS[chain % len(COLOURS)]
        axes.stairs(foot + counts * scale, edges, baseline=foot, fill=True, color=colour, alpha=0.75)
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, float(chains))
    axes.set_xticks([0, 0.5, 1], ["lowest", "", "highest"])
    without_side(axes)
