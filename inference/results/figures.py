"""Figures of a posterior, as SVG text for pages and PNG files."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter
from numpy.typing import ArrayLike, NDArray

from inference.results.answer_law import AnswerLaw
from inference.results.identified import Bounds, set_of
from inference.results.intervals import USUAL, Interval
from inference.results.posterior import Posterior
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.predictive import Predictive

Draws = NDArray[np.float64]

PRIVATE, OBSERVED, PRIOR = "#1b5e9e", "#d9822b", "#8a8f98"
FONT = "DejaVu Sans"
# Names are user text: a dollar sign in a name does not begin a formula.
STYLE: dict[Any, Any] = {
    "font.family": FONT,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "lines.solid_capstyle": "butt",
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "ldpkit",
}
styled = matplotlib.rc_context(STYLE)
# As wide as a phone's screen, where letters are as large as small print.
POINTS, INCHES_WIDE = 72, 3.6
LABEL_WIDTH = 20
# More rows would make the page slow and unreadable; more densities too.
MOST_ROWS, MOST_SHOWN = 30, 6
# Heights in points: of a legend; of a row's least, and of one line of its label; of a scale; of two panels.
LEGEND, ROW, LINE, SCALE, PANELS = 22.0, 20.0, 9.6, 28.0, 80.0
BAR, THIN, DOT = 3.0, 1.0, 5.2
# Values closer than this share of themselves differ by rounding alone.
ROUNDING = 1e-9
MARGIN = 0.05


class Row(NamedTuple):
    """A line of a figure of intervals.

    Attributes:
        name: its label.
        draws: of any shape.
        scale: rows of one scale stand on one axis.
        possible: the values that are possible if some reports were false.
    """

    name: str
    draws: Draws
    scale: str
    possible: Bounds | None = None


def rows_of(posterior: Posterior) -> list[Row]:
    """Return what answers the question: shares on one scale, a formula's slopes on another, others apart."""
    rows = []
    for quantity in posterior.quantities:
        # Ratios and numbers of people do not fit on the scale of shares and means.
        if not quantity.contrast and not re.match("odds|total", quantity.name):
            rows.append(Row(quantity.name, quantity.draws, "share" if quantity.is_share else "mean"))
    for name in posterior.headlines:
        draws, spread = posterior.draws[name], posterior.spreads.get(name, 1.0)
        scale = "slope" if posterior.spreads else "share" if posterior.is_share(name) else name
        label = posterior.in_words(name)[0] if posterior.is_share(name) else name
        label += " (per sd)" if spread != 1 else ""
        possible = set_of(posterior.identified, name)
        rows.append(Row(label, draws * spread, scale, possible))
    return rows


@styled
def interval_figure(posterior: Posterior, interval: Interval = USUAL, figure: Figure | None = None) -> Figure:
    """Draw medians and intervals of what answers the question.

    Args:
        posterior: whose quantities and headlines are drawn, thirty at most of each scale.
        interval: the kind of interval.
        figure: to draw in.

    Returns:
        The figure.
    """
    rows = rows_of(posterior)
    groups = [
        [row for row in rows if row.scale == scale][:MOST_ROWS]
        for scale in dict.fromkeys(row.scale for row in rows)
    ]
    heights = [np.asarray([max(ROW, _label_height(row.name)) for row in group]) for group in groups]
    marks = [Line2D([], [], color=PRIVATE, linewidth=BAR, label="from noisy reports")]
    if posterior.identified is not None and any(row.possible for row in rows):
        marks += [Line2D([], [], color=PRIVATE, linewidth=THIN, label=posterior.identified.label)]
    figure = figure or sized(0)
    sizes = [float(high.sum()) for high in heights]
    figure.set_size_inches(INCHES_WIDE, (LEGEND + sum(sizes) + SCALE * len(sizes)) / POINTS)
    figure.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False, borderpad=0.2)
    panels = figure.subplots(len(groups), 1, squeeze=False, height_ratios=sizes)[:, 0]
    for axes, group, high in zip(panels, groups, heights, strict=True):
        _draw_rows(axes, group, high, interval)
    return figure


def _draw_rows(axes: Axes, rows: Sequence[Row], heights: Draws, interval: Interval) -> None:
    """Draw rows on one scale, one below the other."""
    middles = (np.cumsum(heights) - heights / 2).tolist()
    drawn: list[ArrayLike] = [[0.0]] if rows[0].scale == "slope" else []
    for row, middle in zip(rows, middles, strict=True):
        ends, median = interval.of(row.draws), float(np.median(row.draws))
        if row.possible is not None:
            axes.plot(row.possible, [middle, middle], color=PRIVATE, linewidth=THIN, alpha=0.6)
        axes.plot(ends, [middle, middle], color=PRIVATE, linewidth=BAR)
        axes.plot([median], [middle], "o", color=PRIVATE, markersize=DOT, clip_on=False)
        drawn += [ends, [median], row.possible or []]
    axes.set_xlim(*limits(*drawn))
    axes.set_ylim(float(heights.sum()), 0.0)
    axes.set_yticks(middles, [wrapped(row.name) for row in rows])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if rows[0].scale == "slope":
        axes.axvline(0.0, color=PRIOR, linewidth=0.8)
    if rows[0].scale == "share":
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def interval_axes(posterior: Posterior, interval: Interval) -> Axes:
    """Return the first axes of the page's intervals, in a pyplot figure that notebooks show."""
    from matplotlib import pyplot

    figure = interval_figure(posterior, interval, pyplot.figure(layout="constrained"))
    words = f"{posterior.question}: {posterior.verdict.overall.word}"
    figure.supxlabel(words, fontsize=8, parse_math=False)
    return figure.axes[0]


@styled
def density_figure(posterior: Posterior) -> Figure:
    """Draw histograms of up to six parameters, and the prior as a line."""
    names = list(posterior.draws)[:MOST_SHOWN]
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    figure = sized(rows * (max(_label_height(name) for name in names) + PANELS))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(names) :]:
        axes.remove()
    for axes, name in zip(panels, names, strict=False):
        draws = posterior.draws[name]
        low, high = limits(draws)
        axes.set_xlim(low, high)
        highest = 1.0
        if np.isfinite(draws).all():
            heights, edges = np.histogram(draws, 60, (low, high), density=True)
            highest = float(heights.max())
            axes.stairs(heights, edges, fill=True, color=PRIVATE, alpha=0.55)
        axes.set_ylim(0.0, (1 + MARGIN) * highest)
        if name in posterior.prior_draws:
            before = posterior.prior_draws[name]
            heights, edges = np.histogram(before, bins=12, range=(low, high))
            density = np.minimum(heights / (len(before) * np.diff(edges)), axes.get_ylim()[1])
            axes.stairs(density, edges, baseline=None, color=PRIOR, linewidth=1.2)
        axes.set_title(wrapped(name), pad=2)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        without_side(axes)
    return figure


@styled
def law_figure(law: AnswerLaw) -> Figure:
    """Draw the density of the answers between the bounds: its median and its band."""
    figure = sized(150)
    axes = figure.subplots()
    low, middle, high = law.density
    edges = np.asarray(law.edges)
    axes.stairs(high, edges, baseline=low, fill=True, color=PRIVATE, alpha=0.25)
    axes.stairs(middle, edges, baseline=None, color=PRIVATE, linewidth=1.4)
    axes.set_xlim(float(edges[0]), float(edges[-1]))
    axes.set_ylim(0.0, (1 + MARGIN) * float(np.max(high)))
    without_side(axes)
    return figure


@styled
def predictive_figure(predictive: Predictive) -> Figure:
    """Draw expected and observed entries of the summary, for each report: prior above, posterior below."""
    people = [
        visible(textwrap.shorten(name, LABEL_WIDTH, placeholder="…")) for name in predictive.people.values()
    ]
    # A rotated name of that size is about this long.
    figure = sized(250 + 4.4 * max(map(len, people), default=1))
    panels = [("after the fit", predictive.posterior, PRIVATE)]
    if predictive.prior is not None:
        panels.insert(0, ("before the reports", predictive.prior, PRIOR))
    observed, every = predictive.observed, figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (label, simulated, colour) in zip(every, panels, strict=True):
        low, high = np.quantile(simulated, (0.05, 0.95), axis=0)
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
        axes.plot(places, observed, "o", color=OBSERVED, markersize=3.2)
        axes.set_xlim(-0.5, len(observed) - 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_title(f"expected {label} (90 %, bars)\nand observed (dots)", pad=3)
        axes.tick_params(labelbottom=False)
    lower = every[-1]
    if people:
        lower.tick_params(labelbottom=True)
        lower.set_xticks(list(predictive.people), people, rotation=90)
    of_groups = "shares of each kind of report, by group of people"
    lower.set_xlabel(of_groups if people else "groups of reports, in the summary's order")
    return figure


def limits(*parts: ArrayLike) -> tuple[float, float]:
    """Return an axis from the least to the largest finite number, and 5 % beyond."""
    numbers = np.concatenate([np.ravel(np.asarray(part, float)) for part in parts])
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return 0.0, 1.0
    low, high = float(numbers.min()), float(numbers.max())
    if high - low <= ROUNDING * abs(low):
        low = high = (low + high) / 2
    beyond = MARGIN * (high - low) or MARGIN * abs(low) or MARGIN
    return low - beyond, high + beyond


def wrapped(name: str) -> str:
    """Wrap a name into short lines, without invisible characters."""
    return "\n".join(textwrap.wrap(visible(name), LABEL_WIDTH))


def _label_height(name: str) -> float:
    """Return the height of a label in points."""
    return (wrapped(name).count("\n") + 1) * LINE + 6


def sized(high: float) -> Figure:
    """Return an empty figure as wide as a page's column and this many points high."""
    return Figure(figsize=(INCHES_WIDE, high / POINTS), layout="constrained")


def without_side(axes: Axes) -> None:
    """Leave out the left axis, whose heights mean nothing."""
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def to_svg(figure: Figure) -> str:
    """Return SVG text for inclusion in a page with other figures."""
    buffer = io.StringIO()
    _save(figure, buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    # Ids such as axes_1 would repeat in each figure of a page. Clips' and markers' ids are hashes.
    text = re.sub(r'(<\w+) id="[\w.]+_\d+"', r"\1", text[text.index("<svg") :])
    return text.replace(f"'{FONT}'", f"'{FONT}', Verdana, sans-serif")


def to_png(figure: Figure) -> bytes:
    """Return a PNG file's bytes, at 200 dots an inch."""
    buffer = io.BytesIO()
    _save(figure, buffer, format="png", dpi=200)
    return buffer.getvalue()


@styled
def _save(figure: Figure, buffer: io.StringIO | io.BytesIO, **options: object) -> None:
    with warnings.catch_warnings():
        # The font lacks some scripts: browsers use another font, and a PNG shows boxes.
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(buffer, **options)  # type: ignore[arg-type]
    # Its second file has the layout of its first.
    figure.set_layout_engine("none")
