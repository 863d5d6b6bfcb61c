"""Pictures of calibrations: how far the ranks' distribution function is from the uniform one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from inference.design.bands import counts_at_most
from inference.results.figures import PRIOR, PRIVATE, wrapped

if TYPE_CHECKING:
    from inference.design.calibration import Calibration

MOST_RANKED = 8
BAD = "#a33333"
RANKS_WIDE, RANKS_HIGH = 6.4, 1.5


def rank_plot(found: Calibration) -> Figure:
    """Draw ECDF differences with their band for each parameter: the ones outside first, eight at most."""
    names = sorted(found.ranks, key=lambda name: name not in found.outside)[:MOST_RANKED]
    figure = Figure(figsize=(RANKS_WIDE, 0.8 + RANKS_HIGH * len(names)), layout="constrained")
    panels = figure.subplots(len(names), 1, squeeze=False, sharex="col")[:, 0]
    band = found.band
    for axes, name in zip(panels, names, strict=True):
        ranks, colour = found.ranks[name], BAD if name in found.outside else PRIVATE
        count = len(ranks)
        low, high = band.low / count - band.at, band.high / count - band.at
        axes.fill_between(band.at, low, high, color=PRIOR, alpha=0.3, step="post", linewidth=0)
        shares = counts_at_most(ranks, len(band.at)) / count - band.at
        axes.step(band.at, shares, where="post", color=colour, linewidth=1.2)
        axes.axhline(0, color=PRIOR, linewidth=0.6)
        axes.tick_params(labelsize=6)
        axes.spines[["right", "top"]].set_visible(False)
        axes.set_ylabel(wrapped(name), parse_math=False, rotation=0, ha="right", va="center", fontsize=7)
    panels[-1].set_xlabel("rank of the truth among the draws, as a share", fontsize=8)
    panels[0].set_title("distribution of ranks minus uniform, with band", fontsize=8)
    return figure
