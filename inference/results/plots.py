"""Pictures of posteriors, as SVG text for pages and PNG files, each drawn once for both."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.results.answer_law import AnswerLaw
from inference.results.canvas import LINE_HEIGHT, Canvas, width_of
from inference.results.chain_plots import chains_plot
from inference.results.intervals import USUAL, Interval
from inference.results.panels import MARGIN, ROUNDING, Panel, labels, limits, tens, ticks
from inference.results.posterior import Posterior
from inference.results.predictive import Predictive
from inference.results.shown import INCHES_WIDE, LABEL_WIDTH, POINTS, PRIOR, PRIVATE, RAW, shown, wrapped

INTERVAL = (0.05, 0.95)
WIDE = POINTS * INCHES_WIDE
# In points: a legend's height; a row of intervals, and what of it is above its axis; a share's without ticks.
LEGEND, ROW, DRAWN, PACKED = 20.0, 31.0, 17.0, 19.0
EDGE = 12.0
BAR, THIN, DOT = 3.0, 1.0, 2.6

Draws = Mapping[str, NDArray[np.float64]]


class Mark(NamedTuple):
    """An entry of a legend: a line."""

    colour: str
    width: float
    words: str


def interval_plot(posterior: Posterior, raw: Draws | None = None, interval: Interval = USUAL) -> Canvas:
    """Intervals and medians of the shown parameters, the raw data's beside them where known.

    Shares of one whole have one scale, in per cent; other parameters have a scale each.
    """
    names = shown(posterior)
    shares = [name for name in names if posterior.model == "multinomial" and name.startswith("p[")]
    rows = [PACKED if name in shares[:-1] else ROW for name in names]
    heights = [max(row, _high(name) + row - DRAWN) for row, name in zip(rows, names, strict=True)]
    left = _label_width(names)
    canvas = Canvas(WIDE, LEGEND + sum(heights) + 4)
    _legend(canvas, _marks(posterior, raw, names))
    one_scale = _row_limits(posterior, raw, shares, interval) if shares else None
    top = LEGEND
    for name, height, row in zip(names, heights, rows, strict=True):
        own = one_scale if one_scale and name in shares else _row_limits(posterior, raw, [name], interval)
        panel = Panel(canvas, left, top, WIDE - EDGE - left, height - row + DRAWN, own, (0.0, 1.0))
        _row(panel, posterior, raw, name, interval)
        if row == PACKED:
            panel.bottom(ticks(*own), [""] * len(ticks(*own)))
        else:
            panel.across_ticks(posterior.is_share(name))
        top += height
    return canvas


def _high(name: str) -> float:
    """The height of a label."""
    return (wrapped(name).count("\n") + 1) * LINE_HEIGHT * 7


def _label_width(names: Sequence[str]) -> float:
    return max(width_of(wrapped(name), 7) for name in names) + 10


def _row_limits(
    posterior: Posterior, raw: Draws | None, names: Sequence[str], interval: Interval
) -> tuple[float, float]:
    """From end to end of all that is drawn of these."""
    known = [source[name] for source in (posterior.draws, raw or {}) for name in names if name in source]
    sets = posterior.identified.sets if posterior.identified is not None else {}
    ends = [sets[name] for name in names if name in sets]
    return limits(*(interval.of(one) for one in known), *([np.median(one)] for one in known), *ends)


def _row(panel: Panel, posterior: Posterior, raw: Draws | None, name: str, interval: Interval) -> None:
    beside = raw is not None and name in raw
    height = 0.5 if raw is None else 0.65
    found = posterior.identified
    if found is not None and name in found.sets:
        panel.line(found.sets[name], [height, height], PRIVATE, THIN, 0.6)
    _interval(panel, posterior.draws[name], height, PRIVATE, interval)
    if raw is not None and beside:
        _interval(panel, raw[name], 0.3, RAW, interval)
    panel.canvas.say(panel.left - 5, panel.top + panel.height / 2, wrapped(name), 7, "end")


def _interval(
    panel: Panel, draws: NDArray[np.float64], height: float, colour: str, interval: Interval
) -> None:
    panel.line(interval.of(draws), [height, height], colour, BAR)
    panel.dots([np.median(draws)], [height], colour, DOT)


def _marks(posterior: Posterior, raw: Draws | None, names: Sequence[str]) -> list[Mark]:
    found, marks = posterior.identified, [Mark(PRIVATE, BAR, "from noisy reports")]
    if found is not None and any(name in found.sets for name in names):
        marks.insert(0, Mark(PRIVATE, THIN, found.label))
    if raw is not None and any(name in raw for name in names):
        marks.append(Mark(RAW, BAR, "from the raw answers"))
    return marks


def _legend(canvas: Canvas, marks: Sequence[Mark]) -> None:
    """In the middle above all."""
    widths = [26 + width_of(mark.words, 7) for mark in marks]
    left = max((canvas.width - sum(widths)) / 2, 4.0)
    for mark, width in zip(marks, widths, strict=True):
        canvas.line([(left, 9), (left + 14, 9)], mark.colour, mark.width)
        canvas.say(left + 18, 9, mark.words, 7, "start")
        left += width


class Row(NamedTuple):
    """One line of a picture with one scale."""

    name: str
    draws: NDArray[np.float64]


def rows_plot(rows: Sequence[Row], interval: Interval, *, zero: bool) -> Canvas:
    """Intervals and medians on one scale, one below the other; zero: with a line there."""
    heights = [max(20.0, _high(row.name) + 6) for row in rows]
    canvas = Canvas(WIDE, sum(heights) + 26)
    known = [interval.of(row.draws) for row in rows]
    own = limits(*known, *([np.median(row.draws)] for row in rows), *([[0.0]] if zero else []))
    left = _label_width([row.name for row in rows])
    panel = Panel(canvas, left, 4, WIDE - EDGE - left, sum(heights), own, (sum(heights), 0.0))
    if zero:
        panel.line([0, 0], panel.y, PRIOR)
    middles = np.cumsum(heights) - np.asarray(heights) / 2
    for row, middle in zip(rows, middles.tolist(), strict=True):
        _interval(panel, row.draws, middle, PRIVATE, interval)
    panel.side(middles.tolist(), [wrapped(row.name) for row in rows], 7)
    panel.across_ticks()
    return canvas


def density_plot(posterior: Posterior, raw: Draws | None = None) -> Canvas:
    """Histograms of the draws of up to six parameters, private and raw."""
    names = list(posterior.draws)[:6]
    columns = min(2, len(names))
    heads = max(_high(name) for name in names) + 6
    row = heads + 64 + 18
    canvas = Canvas(WIDE, row * -(-len(names) // columns))
    each = WIDE / columns
    for place, name in enumerate(names):
        across, down = place % columns, place // columns
        known = [source[name] for source in (posterior.draws, raw or {}) if name in source]
        own, tops = limits(*known), []
        drawn = [np.histogram(one, 60, _ends(one), density=True) for one in known if np.isfinite(one).all()]
        tops = [float(heights.max()) for heights, _ in drawn] or [1.0]
        box = (each * across + EDGE, row * down + heads, each - 2 * EDGE, 64.0)
        panel = Panel(canvas, *box, own, (0.0, (1 + MARGIN) * max(tops)))
        for (heights, edges), colour in zip(drawn, (PRIVATE, RAW), strict=False):
            panel.bars(heights, edges, colour, 0.55)
        _prior_density(panel, posterior.prior_draws.get(name))
        panel.title(wrapped(name))
        panel.across_ticks(most=5)
    return canvas


def _ends(draws: NDArray[np.float64]) -> tuple[float, float]:
    """Of all draws' range, or of a little where they are one number."""
    low, high = float(draws.min()), float(draws.max())
    return (low, high) if high - low > ROUNDING * abs(low) else limits([low, high])


def _prior_density(panel: Panel, draws: NDArray[np.float64] | None) -> None:
    """The prior's density where the posterior is, as a line, no higher than the panel."""
    if draws is None:
        return
    heights, edges = np.histogram(draws, bins=12, range=panel.x)
    density = heights / (len(draws) * np.diff(edges))
    panel.stairs(np.minimum(density, panel.y[1]), edges, PRIOR)


def law_plot(law: AnswerLaw) -> Canvas:
    """The density of the answers between the bounds: its median and its band."""
    canvas = Canvas(WIDE, 150)
    low, middle, high = law.density
    top = (1 + MARGIN) * float(np.max(high))
    panel = Panel(
        canvas, EDGE, 6, WIDE - 2 * EDGE, 122, (float(law.edges[0]), float(law.edges[-1])), (0.0, top)
    )
    panel.bars(high, np.asarray(law.edges), PRIVATE, 0.25, low)
    panel.stairs(middle, np.asarray(law.edges), PRIVATE, 1.4)
    panel.across_ticks(size=7)
    return canvas


def predictive_plot(found: Predictive) -> Canvas:
    """Simulated and observed entries of the summary, for each report: prior above, posterior below."""
    people = [textwrap.shorten(name, LABEL_WIDTH, placeholder="…") for name in found.people.values()]
    room = max((width_of(name, 6) for name in people), default=6.0)
    canvas = Canvas(WIDE, 206 + room + 18)
    panels = [
        ("before the reports", found.prior, found.observed_before, PRIOR),
        ("after the fit", found.posterior, found.observed, PRIVATE),
    ]
    for top, (label, simulated, observed, colour) in zip((16.0, 124.0), panels, strict=True):
        panel = _predicted(canvas, top, simulated, observed, colour)
        panel.title(f"expected {label} (90 %, bars) and observed (dots)")
        whole = [one for one in ticks(*panel.x) if one == round(one)]
        panel.bottom(whole, [f"{one:.0f}" * (not people) for one in whole])
    places = list(found.people)
    if people:
        for place, name in zip(places, people, strict=True):
            ((across, _),) = panel.places([place], [panel.y[0]]).tolist()
            canvas.say(across, panel.foot + 6, name, 6, "end", turned=True)
    of_groups = "shares of each kind of report, by group of people"
    words = of_groups if people else "groups of reports, in the summary's order"
    canvas.say(WIDE / 2, canvas.height - 7, words)
    return canvas


def _predicted(
    canvas: Canvas,
    top: float,
    simulated: NDArray[np.float64],
    observed: NDArray[np.float64],
    colour: str,
) -> Panel:
    """Bars of what is expected of each group, dots of what came; on a scale of factors where they are far."""
    low, high = np.quantile(simulated, INTERVAL, axis=0)
    least, most = min(low.min(), observed.min()), max(high.max(), observed.max())
    log = bool(0 < 10 * least < most)
    ends: tuple[float, float] = (least / 1.2, most * 1.2) if log else limits(low, high, observed)
    count = len(observed)
    panel = Panel(canvas, 40, top, WIDE - 40 - EDGE, 80, (-0.5, count - 0.5), ends, log)
    for place in range(count):
        panel.line([place, place], [low[place], high[place]], colour, 5, 0.6)
    panel.dots(np.arange(count), observed, RAW, 1.6)
    up = tens(*ends) if log else ticks(*ends, 5)
    panel.side(up, [f"{one:.3g}" for one in up] if log else labels(up))
    return panel


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
        intervals=intervals.svg(),
        intervals_png=intervals.png(),
        densities=density_plot(posterior, raw).svg(),
        expected=predictive_plot(found).svg() if found else "",
        chains_png=chains_plot(posterior).png(),
        law=law_plot(posterior.law).svg() if posterior.law else "",
    )
