"""Pictures as matplotlib's, for notebooks and for plans; the page of a fit does without."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from inference.results.identified import IdentifiedSets
from inference.results.intervals import Interval
from inference.results.posterior import Posterior
from inference.results.shown import INCHES_A_ROW, INCHES_WIDE, PRIVATE, shown, wrapped

matplotlib.rcParams["font.size"] = 9


def interval_axes(posterior: Posterior, interval: Interval) -> Axes:
    """The page's intervals in a figure of pyplot's, which notebooks show; its first axes."""
    from matplotlib import pyplot

    size = INCHES_WIDE, 0.7 + INCHES_A_ROW * len(shown(posterior))
    figure = pyplot.figure(figsize=size, layout="constrained")
    _draw_intervals(figure, posterior, interval)
    figure.supxlabel(f"{posterior.question}: {posterior.verdict.headline()}", fontsize=8, parse_math=False)
    return figure.axes[0]


def _draw_intervals(figure: Figure, posterior: Posterior, interval: Interval) -> None:
    names = shown(posterior)
    axes = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    if posterior.model == "multinomial":
        _share_scale([axis for axis, name in zip(axes, names, strict=True) if name.startswith("p[")])
    for axis, name in zip(axes, names, strict=True):
        _identified(axis, posterior.identified, name)
        _interval(axis, posterior.draws[name], interval)
        if posterior.is_share(name):
            axis.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        axis.set_ylim(0, 1)
        axis.set_yticks([])
        axis.set_ylabel(wrapped(name), parse_math=False, rotation=0, ha="right", va="center", fontsize=7)
        axis.spines[["left", "right", "top"]].set_visible(False)
        axis.tick_params(labelsize=6)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=7)


def _share_scale(axes: list[Axes]) -> None:
    """One scale, whose numbers stand under the last."""
    for axis in axes[:-1]:
        axis.sharex(axes[-1])
        axis.tick_params(labelbottom=False)


def _interval(axis: Axes, draws: NDArray[np.float64], interval: Interval) -> None:
    ends, label = interval.of(draws), "from noisy reports"
    axis.plot(ends, [0.5, 0.5], color=PRIVATE, linewidth=3, solid_capstyle="butt", label=label)
    axis.plot([np.median(draws)], [0.5], "o", color=PRIVATE, markersize=5)


def _identified(axis: Axes, found: IdentifiedSets | None, name: str) -> None:
    """What false reports leave possible, as a thin line behind the interval."""
    if found is not None and name in found.sets:
        label = found.label
        axis.plot(found.sets[name], [0.5, 0.5], color=PRIVATE, linewidth=1, alpha=0.6, label=label)


def to_png(figure: Figure) -> bytes:
    """A PNG file's bytes, at 150 dots an inch."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()
