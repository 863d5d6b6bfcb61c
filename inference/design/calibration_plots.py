"""Rank plots of a calibration: how far the ranks' distribution function is from the uniform one."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.design.bands import counts_at_most
from inference.design.calibration import BINS, DRAWS, Calibration, Ranks
from inference.results.plots import PRIOR, PRIVATE, wrapped

MOST_PARAMETERS = 8
BAD = "#a33333"
INCHES_WIDE, INCHES_A_ROW = 6.4, 1.5


def rank_plot(found: Calibration) -> Figure:
    """For each parameter (the ones outside first, eight at most): ECDF difference with band, and ranks."""
    names = sorted(found.ranks, key=lambda name: name not in found.outside)[:MOST_PARAMETERS]
    figure = Figure(figsize=(INCHES_WIDE, 0.8 + INCHES_A_ROW * len(names)), layout="constrained")
    rows = figure.subplots(len(names), 2, squeeze=False, sharex="col")
    for (left, right), name in zip(rows, names, strict=True):
        colour = BAD if name in found.outside else PRIVATE
        _ecdf(left, found, found.ranks[name], colour)
        _histogram(right, found.ranks[name], colour)
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
        band.at, counts_at_most(ranks, DRAWS) / count - band.at, where="post", color=colour, linewidth=1.2
    )
    axes.axhline(0, color=PRIOR, linewidth=0.6)
    axes.tick_params(labelsize=6)
    axes.spines[["right", "top"]].set_visible(False)


def _histogram(axes: Axes, ranks: Ranks, colour: str) -> None:
    axes.hist(ranks, bins=np.linspace(0, DRAWS + 1, BINS + 1).tolist(), color=colour, alpha=0.6)
    axes.axhline(len(ranks) / BINS, color=PRIOR, linewidth=0.8)
    axes.tick_params(labelsize=6)
    axes.spines[["right", "top"]].set_visible(False)
