"""Panels of a picture: from numbers to places, with axes whose ticks are round numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inference.results.canvas import LINE_HEIGHT, Canvas

MARGIN = 0.05
TICK, GAP = 2.5, 2.0
# From this size on, or below its inverse, ticks are written with a power of ten.
LARGE = 1e5
MOST_DIGITS = 12
# What differs by less than so much of itself differs by rounding alone.
ROUNDING = 1e-9
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)

Values = NDArray[np.float64]


def limits(*parts: ArrayLike) -> tuple[float, float]:
    """From the least to the largest finite number, and a little beyond."""
    every = np.concatenate([np.ravel(np.asarray(part, float)) for part in parts])
    every = every[np.isfinite(every)]
    if not len(every):
        return 0.0, 1.0
    low, high = float(every.min()), float(every.max())
    if high - low <= ROUNDING * abs(low):
        low = high = (low + high) / 2
    beyond = MARGIN * (high - low) or MARGIN * abs(low) or MARGIN
    return low - beyond, high + beyond


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers between two, at most so many, evenly spaced."""
    unit = 10.0 ** floor(log10((high - low) / most))
    for step in (unit * one for one in STEPS):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first < most:
            break
    return [place * step for place in range(first, last + 1)]


def tens(low: float, high: float) -> list[float]:
    """Powers of ten between two positive numbers, or both ends where there is none."""
    found = [10.0**power for power in range(ceil(log10(low)), floor(log10(high)) + 1)]
    return found or [low, high]


def labels(values: Sequence[float], share: bool = False) -> list[str]:
    """Numbers with as many digits as tell them apart; of shares per cent."""
    shown = [100 * value for value in values] if share else list(values)
    step = min((abs(b - a) for a, b in zip(shown, shown[1:], strict=False)), default=abs(shown[0]) or 1.0)
    largest = max((abs(one) for one in shown), default=0.0)
    if largest >= LARGE or 0 < largest < 1 / LARGE:
        digits = min(max(2, floor(log10(largest)) - floor(log10(step)) + 1), MOST_DIGITS)
        found = [_short(f"{one:.{digits}e}") for one in shown]
    else:
        enough = (d for d in range(MOST_DIGITS) if abs(round(step, d) - step) <= 1e-6 * step)
        digits = next(enough, MOST_DIGITS)
        found = [f"{one + 0.0:.{digits}f}" for one in shown]
    unit = " %" if share else ""
    return [text.replace("-", "−") + unit for text in found]


def _short(text: str) -> str:
    """A number with a power of ten, without what says nothing: 1.50e+06 as 1.5e+06, 0.00e+00 as 0."""
    digits, power = text.split("e")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return digits if digits.lstrip("-") == "0" else f"{digits}e{power}"


@dataclass(frozen=True)
class Panel:
    """A part of a canvas on which numbers have places.

    x, y: the numbers at its left and right, lower and upper end. log: whether those of y grow by factors.
    """

    canvas: Canvas
    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    log: bool = False

    @property
    def foot(self) -> float:
        """The lower end's height on the canvas."""
        return self.top + self.height

    def places(self, x: ArrayLike, y: ArrayLike) -> Values:
        """Points (n, 2) on the canvas."""
        xs, ys = (np.asarray(part, float) for part in np.broadcast_arrays(x, y))
        ends = np.asarray(self.y, float)
        if self.log:
            # What is nothing has no logarithm: it lies at the lower end.
            ys, ends = np.log(np.maximum(ys, ends[0])), np.log(ends)
        across = self.left + self.width * (xs - self.x[0]) / (self.x[1] - self.x[0])
        up = self.foot - self.height * (ys - ends[0]) / (ends[1] - ends[0])
        points = np.column_stack([across, up])
        return points[np.isfinite(points).all(axis=1)]

    def line(self, x: ArrayLike, y: ArrayLike, colour: str, width: float = 0.8, opacity: float = 1.0) -> None:
        """A line through numbers."""
        self.canvas.line(self.places(x, y), colour, width, opacity)

    def dots(self, x: ArrayLike, y: ArrayLike, colour: str, radius: float = 2.5) -> None:
        """A disc at each number."""
        for across, up in self.places(x, y).tolist():
            self.canvas.dot(across, up, radius, colour)

    def stairs(self, heights: ArrayLike, edges: Values, colour: str, width: float = 1.2) -> None:
        """A line along the tops of bars."""
        self.line(np.repeat(edges, 2)[1:-1], np.repeat(np.asarray(heights), 2), colour, width)

    def bars(
        self, heights: ArrayLike, edges: Values, colour: str, opacity: float, feet: ArrayLike = 0.0
    ) -> None:
        """What lies between feet and heights of bars that touch."""
        tops, lows = np.broadcast_arrays(np.asarray(heights, float), np.asarray(feet, float))
        across = np.repeat(edges, 2)[1:-1]
        ups = np.concatenate([np.repeat(tops, 2), np.repeat(lows, 2)[::-1]])
        self.canvas.area(self.places(np.concatenate([across, across[::-1]]), ups), colour, opacity)

    def bottom(self, at: Sequence[float], names: Sequence[str], size: float = 6.0) -> None:
        """The lower axis, ticks at these numbers and their names below."""
        self.canvas.line([(self.left, self.foot), (self.left + self.width, self.foot)])
        for value, name in zip(at, names, strict=True):
            ((across, _),) = self.places([value], [self.y[0]]).tolist()
            self.canvas.line([(across, self.foot), (across, self.foot + TICK)])
            self.canvas.say(across, self.foot + TICK + GAP + size / 2, name, size)

    def side(self, at: Sequence[float], names: Sequence[str], size: float = 6.0) -> None:
        """The left axis, the same."""
        self.canvas.line([(self.left, self.top), (self.left, self.foot)])
        for value, name in zip(at, names, strict=True):
            ((_, up),) = self.places([self.x[0]], [value]).tolist()
            self.canvas.line([(self.left - TICK, up), (self.left, up)])
            self.canvas.say(self.left - TICK - GAP, up, name, size, "end")

    def across_ticks(self, share: bool = False, most: int = 7, size: float = 6.0) -> None:
        """The lower axis with round numbers."""
        at = ticks(*self.x, most)
        self.bottom(at, labels(at, share), size)

    def title(self, text: str, size: float = 7.0, *, begins: bool = False) -> None:
        """Above the panel: in the middle, or where it begins."""
        lines = text.count("\n") + 1
        up = self.top - GAP - lines * LINE_HEIGHT * size / 2
        x = self.left if begins else self.left + self.width / 2
        self.canvas.say(x, up, text, size, "start" if begins else "middle")
