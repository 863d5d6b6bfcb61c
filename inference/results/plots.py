"""Pictures of posteriors, as SVG text for pages and PNG files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import IO, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

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


def interval_plot(posterior: Posterior, raw: Draws | None = None) -> Figure:
    """90 % intervals and medians of the shown parameters, the raw data's beside them where known.

    Shares of one whole have one scale; other parameters have a scale each.
    """
    names = shown(posterior)
    figure = Figure(figsize=(INCHES_WIDE, 0.7 + INCHES_A_ROW * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    if posterior.model == "multinomial":
        _share_scale([axis for axis, name in zip(axes, names, strict=True) if name.startswith("p[")])
    for axis, name in zip(axes, names, strict=True):
        _interval(axis, posterior.draws[name], 0.5 if raw is None else 0.65, PRIVATE, "from noisy reports")
        if raw is not None:
            _interval(axis, raw[name], 0.3, RAW, "from the raw answers")
        axis.set_ylim(0, 1)
        axis.set_yticks([])
        axis.set_ylabel(wrapped(name), parse_math=False, rotation=0, ha="right", va="center", fontsize=7)
        axis.spines[["left", "right", "top"]].set_visible(False)
        axis.tick_params(labelsize=6)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=7)
    return figure


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
    axis: matplotlib.axes.Axes, draws: NDArray[np.float64], height: float, colour: str, label: str
) -> None:
    low, high = np.quantile(draws, INTERVAL)
    axis.plot([low, high], [height, height], color=colour, linewidth=3, solid_capstyle="butt", label=label)
    axis.plot([np.median(draws)], [height], "o", color=colour, markersize=5)


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
        if raw is not None:
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


def predictive_plot(found: Predictive) -> Figure:
    """Simulated and observed entries of the summary, for each report: prior above, posterior below."""
    figure = Figure(figsize=(INCHES_WIDE, 3.2), layout="constrained")
    panels = [("before the reports", found.prior, PRIOR), ("after the fit", found.posterior, PRIVATE)]
    for axis, (label, simulated, colour) in zip(figure.subplots(2, 1, sharex=True), panels, strict=True):
        place = np.arange(len(found.observed))
        low, high = np.quantile(simulated, INTERVAL, axis=0)
        axis.vlines(place, low, high, color=colour, linewidth=5, alpha=0.6)
        axis.plot(place, found.observed, "o", color=RAW, markersize=3)
        least, most = min(low.min(), found.observed.min()), max(high.max(), found.observed.max())
        if 0 < 10 * least < most:
            axis.set_yscale("log")
        axis.set_xlim(-0.5, len(place) - 0.5)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axis.set_title(f"expected {label} (90 %, bars) and observed (dots)", fontsize=7)
        axis.tick_params(labelsize=6, which="both")
        axis.spines[["right", "top"]].set_visible(False)
    axis.set_xlabel("groups of reports, in the summary's order", fontsize=7)
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
