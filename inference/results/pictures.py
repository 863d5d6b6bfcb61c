"""All pictures of one question's posterior, each drawn once for the page and the folder."""

from __future__ import annotations

from dataclasses import dataclass

from inference.results.chain_plots import chains_plot
from inference.results.plots import Draws, density_plot, interval_plot, predictive_plot, to_png, to_svg
from inference.results.posterior import Posterior


@dataclass(frozen=True)
class Pictures:
    """SVG text to stand inside a page, and PNG files' bytes. expected: empty without a predictive check."""

    intervals: str
    intervals_png: bytes
    densities: str
    expected: str
    chains_png: bytes


def pictures_of(posterior: Posterior, raw: Draws | None = None) -> Pictures:
    """The pictures of a posterior, with the raw answers' draws beside it where they are known."""
    intervals, found = interval_plot(posterior, raw), posterior.predictive
    return Pictures(
        intervals=to_svg(intervals),
        intervals_png=to_png(intervals),
        densities=to_svg(density_plot(posterior, raw)),
        expected=to_svg(predictive_plot(found)) if found else "",
        chains_png=to_png(chains_plot(posterior)),
    )
