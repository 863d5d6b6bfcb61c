"""Pictures of calibrations and plans.

A calibration's picture shows how far the ranks' distribution function is from the uniform one; a plan's, half
widths against devices, one line for each epsilon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.design.bands import BINS, counts_at_most
from inference.results.figures import PRIOR, PRIVATE, wrapped

if TYPE_CHECKING:
    from inference.design.calibration import Calibration, Ranks
    from inference.design.plan import Plan

MOST_RANKED = 8
BAD = "#a33333"
RANKS_WIDE, RANKS_HIGH = 6.4, 1.5


def rank_plot(found: Calibration) -> Figure:
    """For each parameter (the ones outside first, eight at most): ECDF difference with band, and ranks."""
    names = sorted(found.ranks, key=lambda name: name not in found.outside)[:MOST_RANKED]
    figure = Figure(figsize=(RANKS_WIDE, 0.8 + RANKS_HIGH * len(names)), layout="constrained")
    rows = figure.subplots(len(names), 2, squeeze=False, sharex="col")
    for (left, right), name in zip(rows, names, strict=True):
        colour = BAD if name in found.outside else PRIVATE
        _ecdf(left, found, found.ranks[name], colour)
        _histogram(right, found.ranks[name], len(found.band.at), colour)
        left.set_ylabel(wrapped(name), parse_math=False, rotation=0, ha="right", va="center", fontsize=7)
    rows[-1, 0].set_xlabel("rank of the truth among the draws, as a share", fontsize=8)
    rows[-1, 1].set_xlabel("rank", fontsize=8)
    rows[0, 0].set_title("distribution of ranks minus uniform, with band", fontsize=8)
    rows[0, 1].set_title("how often", fontsize=8)
    return figure


def _ecdf(axes: Axes, found: Calibration, ranks: Ranks, colour: str) -> None:
    band, count = found.band, len(ranks)
    axes.fill_between(
        band.at,
        band.low / count - band.at,
        band.high / count - band.at,
        color=PRIOR,
        alpha=0.3,
        step="post",
        linewidth=0,
    )
    axes.step(
        band.at,
        counts_at_most(ranks, len(band.at)) / count - band.at,
        where="post",
        color=colour,
        linewidth=1.2,
    )
    axes.axhline(0, color=PRIOR, linewidth=0.6)
    axes.tick_params(labelsize=6)
    axes.spines[["right", "top"]].set_visible(False)


def _histogram(axes: Axes, ranks: Ranks, draws: int, colour: str) -> None:
    axes.hist(ranks, bins=np.linspace(0, draws + 1, BINS + 1).tolist(), color=colour, alpha=0.6)
    axes.axhline(len(ranks) / BINS, color=PRIOR, linewidth=0.8)
    axes.tick_params(labelsize=6)
    axes.spines[["right", "top"]].set_visible(False)


COLOURS = ("#1b5e9e", "#d9822b", "#1f7a4d", "#7a3b9e", "#a33333", "#5b6472")
MOST_PLANNED = 6
PLAN_WIDE, PLAN_HIGH = 4.2, 2.8


def plan_plot(found: Plan, width: float | None = None) -> Figure:
    """Draw a picture for each parameter (six at most), both axes logarithmic; the wanted width as a line."""
    names = found.parameters[:MOST_PLANNED]
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    size = (PLAN_WIDE * columns, 0.4 + PLAN_HIGH * rows)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for place, (axes, name) in enumerate(zip(panels, names, strict=False)):
        for (epsilon, widths), colour in zip(found.half_widths.items(), COLOURS * 9, strict=False):
            axes.loglog(
                found.devices, widths[:, place], "o-", color=colour, label=f"ε = {epsilon}", markersize=4
            )
        if width is not None:
            axes.axhline(width, color=PRIOR, linestyle="--", linewidth=1)
        axes.set_title(wrapped(name), parse_math=False, fontsize=8)
        axes.set_xlabel("devices", fontsize=8)
        axes.set_ylabel("± (half of the 90 % interval)", fontsize=8)
        axes.tick_params(labelsize=7, which="both")
        axes.spines[["right", "top"]].set_visible(False)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    panels[0].legend(frameon=False, fontsize=7)
    return figure
