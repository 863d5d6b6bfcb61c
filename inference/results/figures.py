"""Matplotlib figures, written as SVG text for pages and as PNG files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from inference.results.plot_parameters import INCHES_WIDE, POINTS

FONT = "DejaVu Sans"
# Names are user text: a dollar sign in a name does not begin a formula.
STYLE: dict[Any, Any] = {
    "font.family": FONT,
    "font.size": 7,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "axes.titlesize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "lines.solid_capstyle": "butt",
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "ldpkit",
}
# Values closer than this share of themselves differ by rounding alone.
ROUNDING = 1e-9
MARGIN = 0.05

styled = matplotlib.rc_context(STYLE)


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


def sized(high: float) -> Figure:
    """Return an empty figure as wide as a page's column and this many points high."""
    return Figure(figsize=(INCHES_WIDE, high / POINTS), layout="constrained")


def without_side(axes: Axes) -> None:
    """Leave out the left axis, whose heights mean nothing."""
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def stairs(axes: Axes, heights: ArrayLike, edges: Sequence[float], colour: str, width: float = 1.2) -> None:
    """Draw the outline of bars that touch, without their feet."""
    axes.stairs(heights, edges, baseline=None, color=colour, linewidth=width)


def to_svg(figure: Figure) -> str:
    """Return SVG text for inclusion in a page with other figures."""
    buffer = io.StringIO()
    _save(figure, buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    # Ids such as axes_1 would repeat in each figure of a page. Clips' and markers' ids are hashes.
    text = re.sub(r'(<\w+) id="[\w.]+_\d+"', r"\1", text[text.index("<svg") :])
    return text.replace(f"'{FONT}'", f"'{FONT}', Verdana, sans-serif")


def to_png(figure: Figure) -> bytes:
    """Return a PNG file's bytes, at 150 dots an inch."""
    buffer = io.BytesIO()
    _save(figure, buffer, format="png", dpi=150)
    return buffer.getvalue()


@styled
def _save(figure: Figure, buffer: io.StringIO | io.BytesIO, **options: object) -> None:
    with warnings.catch_warnings():
        # The font lacks some scripts: browsers use another font, and a PNG shows boxes.
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(buffer, **options)  # type: ignore[arg-type]
