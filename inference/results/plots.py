"""Pictures of posteriors, as SVG text for pages and PNG files, each drawn once for both.

How the chains of a fit mix shows in traces and rank histograms (Vehtari et al. 2021, Bayesian Analysis
16(2)).
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray
from scipy import stats

from inference.results.answer_law import AnswerLaw
from inference.results.identified import IdentifiedSets
from inference.results.intervals import USUAL, Interval
from inference.results.posterior import Posterior
from inference.results.predictive import Predictive

matplotlib.rcParams["svg.hashsalt"] = "ldpkit"
matplotlib.rcParams["font.size"] = 9
PRIVATE, RAW, PRIOR = "#1b5e9e", "#d9822b", "#8a8f98"
INTERVAL = (0.05, 0.95)
INCHES_WIDE = 4.8
INCHES_A_ROW = 0.42
LABEL_WIDTH = 26
# More rows than these would make the page slow, and nobody would read them.
MOST_ROWS = 30

Draws = Mapping[str, NDArray[np.float64]]


def interval_plot(posterior: Posterior, raw: Draws | None = None, interval: Interval = USUAL) -> Figure:
    """Intervals and medians of the shown parameters, the raw data's beside them where known.

    Shares of one whole have one scale, in per cent; other parameters have a scale each.
    """
    figure = Figure(figsize=_size_for(posterior), layout="constrained")
    _draw_intervals(figure, posterior, raw, interval)
    return figure


def interval_axes(posterior: Posterior, interval: Interval) -> Axes:
    """The same in a figure of pyplot's, which notebooks show; its first axes."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=_size_for(posterior), layout="constrained")
    _draw_intervals(figure, posterior, None, interval)
    figure.supxlabel(f"{posterior.question}: {posterior.verdict.headline()}", fontsize=8, parse_math=False)
    return figure.axes[0]


def _size_for(posterior: Posterior) -> tuple[float, float]:
    return INCHES_WIDE, 0.7 + INCHES_A_ROW * len(shown(posterior))


def _draw_intervals(figure: Figure, posterior: Posterior, raw: Draws | None, interval: Interval) -> None:
    names = shown(posterior)
    axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    if posterior.model == "multinomial":
        _share_scale([axis for axis, name in zip(axes, names, strict=True) if name.startswith("p[")])
    for axis, name in zip(axes, names, strict=True):
        _identified(axis, posterior.identified, name, 0.5 if raw is None else 0.65)
        height = 0.5 if raw is None else 0.65
        _interval(axis, posterior.draws[name], height, PRIVATE, "from noisy reports", interval)
        if raw is not None and name in raw:
            _interval(axis, raw[name], 0.3, RAW, "from the raw answers", interval)
        if posterior.is_share(name):
            axis.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        axis.set_ylim(0, 1)
        axis.set_yticks([])
        axis.set_ylabel(wrapped(name), parse_math=False, rotation=0, ha="right", va="center", fontsize=7)
        axis.spines[["left", "right", "top"]].set_visible(False)
        axis.tick_params(labelsize=6)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=7)


def _share_scale(axes: Sequence[matplotlib.axes.Axes]) -> None:
    """One scale, whose numbers stand under the last."""
    for axis in axes[:-1]:
        axis.sharex(axes[-1])
        axis.tick_params(labelbottom=False)


def shown(posterior: Posterior) -> list[str]:
    """All parameters, or of very many the ones with the largest means, in their own order."""
    means = {name: float(draws.mean()) for name, draws in posterior.draws.items()}
    kept = set(sorted(means, key=lambda name: -means[name])[:MOST_ROWS])
    return [name for name in posterior.draws if name in kept]


def wrapped(name: str) -> str:
    """A parameter's name on several short lines."""
    return "\n".join(textwrap.wrap(name, LABEL_WIDTH))


def _interval(
    axis: Axes, draws: NDArray[np.float64], height: float, colour: str, label: str, interval: Interval
) -> None:
    low, high = interval.of(draws)
    axis.plot([low, high], [height, height], color=colour, linewidth=3, solid_capstyle="butt", label=label)
    axis.plot([np.median(draws)], [height], "o", color=colour, markersize=5)


def _identified(axis: Axes, found: IdentifiedSets | None, name: str, height: float) -> None:
    """What false reports leave possible, as a thin line behind the interval."""
    if found is not None and name in found.sets:
        label = f"if {100 * found.share:g} % were false"
        axis.plot(found.sets[name], [height, height], color=PRIVATE, linewidth=1, alpha=0.6, label=label)


def density_plot(posterior: Posterior, raw: Draws | None = None) -> Figure:
    """Histograms of the draws of up to six parameters, private and raw."""
    names = list(posterior.draws)[:6]
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(INCHES_WIDE, 0.3 + 1.4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, name in zip(axes, names, strict=False):
        _density(axis, posterior.draws[name], PRIVATE)
        _prior_density(axis, posterior.prior_draws.get(name))
        if raw is not None and name in raw:
            _density(axis, raw[name], RAW)
        axis.set_title(wrapped(name), parse_math=False, fontsize=7)
        axis.set_yticks([])
        axis.tick_params(labelsize=7)
        axis.spines[["left", "right", "top"]].set_visible(False)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    return figure


def _density(axis: matplotlib.axes.Axes, draws: NDArray[np.float64], colour: str) -> None:
    axis.hist(draws.ravel(), bins=60, density=True, color=colour, alpha=0.55, histtype="stepfilled")


def _prior_density(axis: matplotlib.axes.Axes, draws: NDArray[np.float64] | None) -> None:
    """The prior's density where the posterior is, as a line."""
    if draws is None:
        return
    low, high = axis.get_xlim()
    heights, edges = np.histogram(draws, bins=12, range=(low, high))
    axis.stairs(heights / (len(draws) * np.diff(edges)), edges, color=PRIOR, linewidth=1.2)
    axis.set_xlim(low, high)


def law_plot(law: AnswerLaw) -> Figure:
    """The density of the answers between the bounds: its median and its band."""
    figure = Figure(figsize=(INCHES_WIDE, 2.2), layout="constrained")
    axis = figure.subplots()
    low, middle, high = law.density
    axis.stairs(high, law.edges, baseline=low, fill=True, color=PRIVATE, alpha=0.25, linewidth=0)
    axis.stairs(middle, law.edges, color=PRIVATE, linewidth=1.4)
    axis.set_ylim(0, None)
    axis.set_xlim(law.edges[0], law.edges[-1])
    axis.set_yticks([])
    axis.tick_params(labelsize=7)
    axis.spines[["left", "right", "top"]].set_visible(False)
    return figure


def predictive_plot(found: Predictive) -> Figure:
    """Simulated and observed entries of the summary, for each report: prior above, posterior below."""
    figure = Figure(figsize=(INCHES_WIDE, 4.0 if found.people else 3.2), layout="constrained")
    panels = [
        ("before the reports", found.prior, found.observed_before, PRIOR),
        ("after the fit", found.posterior, found.observed, PRIVATE),
    ]
    axes = figure.subplots(2, 1, sharex=found.before is None)
    for axis, (label, simulated, observed, colour) in zip(axes, panels, strict=True):
        place = np.arange(len(observed))
        low, high = np.quantile(simulated, INTERVAL, axis=0)
        axis.vlines(place, low, high, color=colour, linewidth=5, alpha=0.6)
        axis.plot(place, observed, "o", color=RAW, markersize=3)
        least, most = min(low.min(), observed.min()), max(high.max(), observed.max())
        if 0 < 10 * least < most:
            axis.set_yscale("log")
        axis.set_xlim(-0.5, len(place) - 0.5)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axis.set_title(f"expected {label} (90 %, bars) and observed (dots)", fontsize=7)
        axis.tick_params(labelsize=6, which="both")
        axis.spines[["right", "top"]].set_visible(False)
    if found.people:
        names = [textwrap.shorten(name, LABEL_WIDTH, placeholder="…") for name in found.people.values()]
        axis.set_xticks(list(found.people), names, rotation=90, parse_math=False)
    of_groups = "shares of each kind of report, by group of people"
    axis.set_xlabel(of_groups if found.people else "groups of reports, in the summary's order", fontsize=7)
    return figure


def to_svg(figure: Figure) -> str:
    """SVG text to stand inside a page: no XML head, no date."""
    buffer = io.StringIO()
    _save(figure, buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def to_png(figure: Figure) -> bytes:
    """A PNG file's bytes, at 150 dots an inch."""
    buffer = io.BytesIO()
    _save(figure, buffer, format="png", dpi=150)
    return buffer.getvalue()


def _save(figure: Figure, buffer: IO[Any], **options: Any) -> None:
    figure.savefig(buffer, **options)
    # A second format has the same layout, whose search costs as much as the drawing.
    figure.set_layout_engine("none")


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


def _traces(axis: Axes, draws: Traces) -> None:
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


@dataclass(frozen=True)
class Pictures:
    """SVG text to stand inside a page, and PNG files' bytes.

    expected: empty without a predictive check; law: empty without a distribution of the answers.
    """

    intervals: str
    intervals_png: bytes
    densities: str
    expected: str
    chains_png: bytes
    law: str


def pictures_of(posterior: Posterior, raw: Draws | None = None, interval: Interval = USUAL) -> Pictures:
    """The pictures of a posterior, with the raw answers' draws beside it where they are known."""
    intervals, found = interval_plot(posterior, raw, interval), posterior.predictive
    return Pictures(
        intervals=to_svg(intervals),
        intervals_png=to_png(intervals),
        densities=to_svg(density_plot(posterior, raw)),
        expected=to_svg(predictive_plot(found)) if found else "",
        chains_png=to_png(chains_plot(posterior)),
        law=to_svg(law_plot(posterior.law)) if posterior.law else "",
    )
