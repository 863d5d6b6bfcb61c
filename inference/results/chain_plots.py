"""How chains mix, in traces and rank histograms (Vehtari et al. 2021, Bayesian Analysis 16(2))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.chances import average_ranks, binomial_quantile
from inference.results.canvas import Canvas
from inference.results.panels import Panel, labels, limits, ticks
from inference.results.posterior import Posterior
from inference.results.shown import INCHES_WIDE, POINTS, PRIOR, wrapped

MOST_SHOWN = 6
BINS = 20
# Of the bins of independent draws, this share lies in the band.
INSIDE = 0.99
COLOURS = ("#1b5e9e", "#d9822b", "#1f7a4d", "#8e4585")

Traces = NDArray[np.float64]


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


def ranks(draws: Traces) -> Ranks:
    """Rank histograms of draws (chains, draws) that vary.

    The band is that of independent draws; draws of one chain resemble each other, so that even chains that
    agree leave it somewhat more often.
    """
    each = draws.shape[1]
    pooled = average_ranks(draws)
    edges = np.linspace(0.5, draws.size + 0.5, BINS + 1)
    counts = np.asarray([np.histogram(chain, edges)[0] for chain in pooled])
    low, high = (binomial_quantile(tail, each, 1 / BINS) for tail in ((1 - INSIDE) / 2, (1 + INSIDE) / 2))
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


# In points: of the whole picture, of one row, and of a row's panels.
HEAD, ROW, PANEL = 6.0, 78.0, 46.0
TRACE_LEFT, TRACE_WIDE, RANK_LEFT, RANK_WIDE = 34.0, 170.0, 222.0, 108.0


def chains_plot(posterior: Posterior) -> Canvas:
    """Traces and rank histograms of the parameters that mix worst; a colour a chain."""
    names, wide = worst_first(posterior), POINTS * INCHES_WIDE
    if not names:
        canvas = Canvas(wide, ROW)
        canvas.say(wide / 2, ROW / 2, "no parameter varies", 9, colour=PRIOR)
        return canvas
    canvas = Canvas(wide, HEAD + ROW * len(names) + 14)
    for place, name in enumerate(names):
        top, last = HEAD + place * ROW + 20, name == names[-1]
        _traces(canvas, top, name, posterior.draws[name], last)
        r_hat = f"R-hat {posterior.diagnostics.r_hat[name]:.3f}"
        _rank_bars(canvas, top, r_hat, ranks(posterior.draws[name]), last)
    for left, width, words in (
        (TRACE_LEFT, TRACE_WIDE, "draw"),
        (RANK_LEFT, RANK_WIDE, "rank among all draws"),
    ):
        canvas.say(left + width / 2, canvas.height - 7, words)
    return canvas


def _traces(canvas: Canvas, top: float, name: str, draws: Traces, last: bool) -> None:
    count = draws.shape[1]
    across = np.arange(count)
    panel = Panel(canvas, TRACE_LEFT, top, TRACE_WIDE, PANEL, (0.0, max(count - 1.0, 1.0)), limits(draws))
    for chain, line in enumerate(draws):
        panel.line(across, line, COLOURS[chain % len(COLOURS)], 0.35, 0.8)
    at, up = ticks(*panel.x, 6), ticks(*panel.y, 5)
    panel.bottom(at, labels(at) if last else [""] * len(at))
    panel.side(up, labels(up))
    panel.title(wrapped(name), begins=True)


def _rank_bars(canvas: Canvas, top: float, title: str, found: Ranks, last: bool) -> None:
    """A row of bars for each chain, the first on top; the band that bars should end in behind each row."""
    chains = len(found.counts)
    scale = 0.9 / max(float(found.counts.max()), found.high, 1.5 * found.expected)
    edges, whole = np.linspace(0, 1, BINS + 1), np.array([0.0, 1.0])
    panel = Panel(canvas, RANK_LEFT, top, RANK_WIDE, PANEL, (0.0, 1.0), (0.0, float(chains)))
    for chain, counts in enumerate(found.counts):
        foot = chains - 1 - chain
        panel.bars([foot + found.high * scale], whole, PRIOR, 0.3, foot + found.low * scale)
        panel.bars(foot + counts * scale, edges, COLOURS[chain % len(COLOURS)], 0.75, foot)
    panel.bottom([0, 0.5, 1], ["lowest", "", "highest"] if last else [""] * 3)
    panel.title(title, begins=True)
