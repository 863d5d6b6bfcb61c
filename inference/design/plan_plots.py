"""The picture of a plan: half width against devices, one line for each epsilon."""

from __future__ import annotations

from matplotlib.figure import Figure

from inference.design.plan import Plan
from inference.results.plots import PRIOR, wrapped

COLOURS = ("#1b5e9e", "#d9822b", "#1f7a4d", "#7a3b9e", "#a33333", "#5b6472")
MOST_PARAMETERS = 6
INCHES_WIDE, INCHES_HIGH = 4.2, 2.8


def plan_plot(found: Plan, width: float | None = None) -> Figure:
    """One picture for each parameter (six at most), both axes logarithmic; the wanted width as a line."""
    names = found.parameters[:MOST_PARAMETERS]
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    size = (INCHES_WIDE * columns, 0.4 + INCHES_HIGH * rows)
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
