"""Pictures of posteriors, as SVG text for pages and PNG files."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter
from numpy.typing import NDArray

from inference.results.answer_law import AnswerLaw
from inference.results.chain_plots import chains_plot
from inference.results.figures import (
    MARGIN,
    ROUNDING,
    limits,
    sized,
    stairs,
    styled,
    to_png,
    to_svg,
    without_side,
)
from inference.results.intervals import USUAL, Interval
from inference.results.plot_parameters import (
    INCHES_WIDE,
    LABEL_WIDTH,
    POINTS,
    PRIOR,
    PRIVATE,
    RAW,
    shown,
    wrapped,
)
from inference.results.posterior import Posterior
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.predictive import Predictive

INTERVAL = (0.05, 0.95)
# Heights in points: a legend; a row of intervals with ticks and without; a line of a label.
LEGEND, ROW, PACKED, LINE = 20.0, 32.0, 22.0, 8.4
BAR, THIN, DOT = 3.0, 1.0, 5.2

Draws = Mapping[str, NDArray[np.float64]]


@styled
def interval_plot(
    posterior: Posterior, raw: Draws | None = None, interval: Interval = USUAL, figure: Figure | None = None
) -> Figure:
    """Draw medians and intervals of the shown parameters, also from the raw answers if known.

    Shares of one whole have a common scale, in per cent; other parameters have a scale each.
    """
    names = shown(posterior)
    shares = [name for name in names if posterior.model == "multinomial" and name.startswith("p[")]
    rows = [max(PACKED if name in shares[:-1] else ROW, _high(name) + 6) for name in names]
    figure = figure or sized(0)
    figure.set_size_inches(INCHES_WIDE, (LEGEND + sum(rows)) / POINTS)
    _legend(figure, posterior, raw, names)
    one_scale = _row_limits(posterior, raw, shares, interval) if shares else None
    panels = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    for axes, name in zip(panels, names, strict=True):
        own = one_scale if one_scale and name in shares else _row_limits(posterior, raw, [name], interval)
        axes.set_xlim(*own)
        axes.set_ylim(0, 1)
        without_side(axes)
        _row(axes, posterior, raw, name, interval)
        axes.set_ylabel(wrapped(name), rotation=0, ha="right", va="center")
        if posterior.is_share(name):
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        axes.tick_params(labelbottom=name not in shares[:-1])
    return figure


def interval_axes(posterior: Posterior, interval: Interval) -> Axes:
    """Return the first axes of the page's intervals, in a pyplot figure that notebooks show."""
    from matplotlib import pyplot

    figure = interval_plot(posterior, None, interval, pyplot.figure(layout="constrained"))
    words = f"{posterior.question}: {posterior.verdict.overall.word}"
    figure.supxlabel(words, fontsize=6, parse_math=False)
    return figure.axes[0]


def _high(name: str) -> float:
    """Return the height of a label in points."""
    return (wrapped(name).count("\n") + 1) * LINE


def _row_limits(
    posterior: Posterior, raw: Draws | None, names: Sequence[str], interval: Interval
) -> tuple[float, float]:
    """Return the limits of everything drawn for these parameters."""
    known = [source[name] for source in (posterior.draws, raw or {}) for name in names if name in source]
    sets = posterior.identified.sets if posterior.identified is not None else {}
    ends = [sets[name] for name in names if name in sets]
    return limits(*(interval.of(one) for one in known), *([np.median(one)] for one in known), *ends)


def _row(axes: Axes, posterior: Posterior, raw: Draws | None, name: str, interval: Interval) -> None:
    height = 0.5 if raw is None else 0.65
    found = posterior.identified
    if found is not None and name in found.sets:
        axes.plot(found.sets[name], [height, height], color=PRIVATE, linewidth=THIN, alpha=0.6)
    _interval(axes, posterior.draws[name], height, PRIVATE, interval)
    if raw is not None and name in raw:
        _interval(axes, raw[name], 0.3, RAW, interval)


def _interval(axes: Axes, draws: NDArray[np.float64], height: float, colour: str, interval: Interval) -> None:
    axes.plot(interval.of(draws), [height, height], color=colour, linewidth=BAR)
    axes.plot([np.median(draws)], [height], "o", color=colour, markersize=DOT, clip_on=False)


def _legend(figure: Figure, posterior: Posterior, raw: Draws | None, names: Sequence[str]) -> None:
    found, marks = posterior.identified, [(PRIVATE, BAR, "from noisy reports")]
    if found is not None and any(name in found.sets for name in names):
        marks.insert(0, (PRIVATE, THIN, found.label))
    if raw is not None and any(name in raw for name in names):
        marks.append((RAW, BAR, "from the raw answers"))
    lines = [Line2D([], [], color=colour, linewidth=width, label=words) for colour, width, words in marks]
    figure.legend(handles=lines, loc="outside upper center", ncols=3, frameon=False, borderpad=0.2)


class Row(NamedTuple):
    """One line of a picture with one scale."""

    name: str
    draws: NDArray[np.float64]


@styled
def rows_plot(rows: Sequence[Row], interval: Interval, *, zero: bool) -> Figure:
    """Draw medians and intervals on one scale, one below the other; zero: with a line at zero."""
    heights = np.asarray([max(20.0, _high(row.name) + 6) for row in rows])
    high = float(heights.sum())
    figure = sized(high + 26)
    axes = figure.subplots()
    known = [interval.of(row.draws) for row in rows]
    axes.set_xlim(*limits(*known, *([np.median(row.draws)] for row in rows), *([[0.0]] if zero else [])))
    axes.set_ylim(high, 0.0)
    if zero:
        axes.axvline(0.0, color=PRIOR, linewidth=0.8)
    middles = (np.cumsum(heights) - heights / 2).tolist()
    for row, middle in zip(rows, middles, strict=True):
        _interval(axes, row.draws, middle, PRIVATE, interval)
    axes.set_yticks(middles, [wrapped(row.name) for row in rows], fontsize=7)
    return figure


@styled
def density_plot(posterior: Posterior, raw: Draws | None = None) -> Figure:
    """Draw histograms of up to six parameters, private and raw, and the prior as a line."""
    names = list(posterior.draws)[:6]
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    figure = sized(rows * (max(_high(name) for name in names) + 88))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(names) :]:
        axes.remove()
    for axes, name in zip(panels, names, strict=False):
        known = [source[name] for source in (posterior.draws, raw or {}) if name in source]
        drawn = [np.histogram(one, 60, _ends(one), density=True) for one in known if np.isfinite(one).all()]
        axes.set_xlim(*limits(*known))
        axes.set_ylim(0.0, (1 + MARGIN) * max([float(heights.max()) for heights, _ in drawn] or [1.0]))
        for (heights, edges), colour in zip(drawn, (PRIVATE, RAW), strict=False):
            axes.stairs(heights, edges, fill=True, color=colour, alpha=0.55)
        _prior_density(axes, posterior.prior_draws.get(name))
        axes.set_title(wrapped(name), pad=2)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        without_side(axes)
    return figure


def _ends(draws: NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of draws, slightly widened if they are all equal."""
    low, high = float(draws.min()), float(draws.max())
    return (low, high) if high - low > ROUNDING * abs(low) else limits([low, high])


def _prior_density(axes: Axes, draws: NDArray[np.float64] | None) -> None:
    """Draw the prior's density in the posterior's range, no higher than the axes."""
    if draws is None:
        return
    heights, edges = np.histogram(draws, bins=12, range=axes.get_xlim())
    density = heights / (len(draws) * np.diff(edges))
    stairs(axes, np.minimum(density, axes.get_ylim()[1]), edges.tolist(), PRIOR)


@styled
def law_plot(law: AnswerLaw) -> Figure:
    """Draw the density of the answers between the bounds: its median and its band."""
    figure = sized(150)
    axes = figure.subplots()
    low, middle, high = law.density
    edges = np.asarray(law.edges)
    axes.stairs(high, edges, baseline=low, fill=True, color=PRIVATE, alpha=0.25)
    stairs(axes, middle, edges.tolist(), PRIVATE, 1.4)
    axes.set_xlim(float(edges[0]), float(edges[-1]))
    axes.set_ylim(0.0, (1 + MARGIN) * float(np.max(high)))
    without_side(axes)
    return figure


@styled
def predictive_plot(found: Predictive) -> Figure:
    """Draw expected and observed entries of the summary, for each report: prior above, posterior below."""
    people = [visible(textwrap.shorten(name, LABEL_WIDTH, placeholder="…")) for name in found.people.values()]
    # A rotated name of that size is about this long.
    figure = sized(224 + 3.8 * max(map(len, people), default=1))
    panels = [("after the fit", found.posterior, PRIVATE)]
    if found.prior is not None:
        panels.insert(0, ("before the reports", found.prior, PRIOR))
    every = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (label, simulated, colour) in zip(every, panels, strict=True):
        _predicted(axes, simulated, found.observed, colour)
        axes.set_title(f"expected {label} (90 %, bars) and observed (dots)", pad=3)
        axes.tick_params(labelbottom=False)
    lower = every[-1]
    if people:
        lower.tick_params(labelbottom=True)
        lower.set_xticks(list(found.people), people, rotation=90)
    of_groups = "shares of each kind of report, by group of people"
    lower.set_xlabel(of_groups if people else "groups of reports, in the summary's order")
    return figure


def _predicted(
    axes: Axes, simulated: NDArray[np.float64], observed: NDArray[np.float64], colour: str
) -> None:
    """Draw bars for expected and dots for observed entries, on a log scale if the values are far apart."""
    low, high = np.quantile(simulated, INTERVAL, axis=0)
    least, most = min(low.min(), observed.min()), max(high.max(), observed.max())
    if 0 < 10 * least < most:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.3g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(least / 1.2, most * 1.2)
    else:
        axes.set_ylim(*limits(low, high, observed))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    places = np.arange(len(observed))
    axes.vlines(places, low, high, color=colour, linewidth=5, alpha=0.6)
    axes.plot(places, observed, "o", color=RAW, markersize=3.2)
    axes.set_xlim(-0.5, len(observed) - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


@dataclass(frozen=True)
class Pictures:
    """SVG text for inclusion in a page, and PNG files' bytes.

    expected: empty without a predictive check; law: empty without a distribution of the answers.
    """

    intervals: str
    intervals_png: bytes
    densities: str
    expected: str
    chains_png: bytes
    law: str


def pictures_of(posterior: Posterior, raw: Draws | None = None, interval: Interval = USUAL) -> Pictures:
    """Draw the pictures of a posterior, with the raw answers' draws if known."""
    intervals, found = interval_plot(posterior, raw, interval), posterior.predictive
    return Pictures(
        intervals=to_svg(intervals),
        intervals_png=to_png(intervals),
        densities=to_svg(density_plot(posterior, raw)),
        expected=to_svg(predictive_plot(found)) if found else "",
        chains_png=to_png(chains_plot(posterior)),
        law=to_svg(law_plot(posterior.law)) if posterior.law else "",
    )
