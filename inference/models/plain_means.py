"""Mean and sd of the answers as clipped to their bounds, estimated through the noise without a law.

A law also describes answers beyond the bounds. If its parameters rest on them, or if the reports cannot show
that the law is wrong, the result must report both side by side.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from inference.models.totals import SQUARE_WEIGHT

# A law with more mass than this beyond the bounds makes claims that no answer supports.
BEYOND = 0.05
# Standard errors to each side in a stated interval of 90 %.
_NINETY = 1.645
TWO_SUMS = (
    "the sums of a number and of its square cannot show whether answers follow this law: any two sums fit "
    "one, and no check here could find that it is wrong. Its parameters are right if it is; ask a question "
    "with `cells` where that is not known"
)


class PlainMean(NamedTuple):
    """Clipped answers' mean in own units, its standard error, and their sd (NaN if noise hides it)."""

    mean: float
    error: float
    sd: float = math.nan

    def in_words(self) -> str:
        """Return mean, its 90 % interval and the sd in words."""
        low, high = (f"{self.mean + side * _NINETY * self.error:.4g}" for side in (-1, 1))
        spread = "" if math.isnan(self.sd) else f" and sd {self.sd:.4g}"
        return f"mean {self.mean:.4g} (90 % interval {low} to {high}){spread}"


def pooled(means: Sequence[tuple[int, PlainMean]]) -> PlainMean:
    """Pool the plain means of separate samples, given (n, plain mean) of each, weighted by size."""
    shares = np.asarray([n for n, _ in means]) / sum(n for n, _ in means)
    mean = float(shares @ np.asarray([one.mean for _, one in means]))
    error = float(np.sqrt(shares**2 @ np.asarray([one.error**2 for _, one in means])))
    return PlainMean(mean, error)


def of_two_sums(total: NDArray[np.float64], n: int, noise_sd: float, zero: float, unit: float) -> PlainMean:
    """Estimate from noisy sums (2,) of u and its weighted square; answers are zero + unit × u, u in −1…1."""
    first, second = total / n
    variance = second / SQUARE_WEIGHT - first**2
    # The variance's noise to first order: w is above 1, and |u| at most 1.
    noise = noise_sd / n * math.sqrt(1 / SQUARE_WEIGHT**2 + 4 * first**2)
    error = math.sqrt((noise_sd / n) ** 2 + max(variance, 0.0) / n)
    sd = math.sqrt(variance) if variance > 2 * noise else math.nan
    return PlainMean(zero + unit * first, unit * error, unit * sd)


def two_sums_notes(means: dict[str, PlainMean]) -> tuple[str, ...]:
    """Return the note on a law fitted to two sums; means: {field, or "" for a single number: plain mean}."""
    if not means:
        return ()
    listed = "; ".join(f"{name}: {one.in_words()}" if name else one.in_words() for name, one in means.items())
    return (f"{TWO_SUMS}. The answers as clipped to the bounds have, whatever their law, {listed}",)


class Clipped(NamedTuple):
    """The answers as clipped to their bounds, next to a fitted law.

    plain: their mean. beyond: the share of people that the law puts beyond the bounds. low, high: the bounds.
    """

    plain: PlainMean
    beyond: float
    low: float
    high: float

    @property
    def decides(self) -> bool:
        """Return True if the law's own mean rests on answers that no person can give."""
        return self.beyond > BEYOND

    def in_words(self) -> str:
        """Return the doubt about the law's parameters."""
        return beyond_words(self.plain, self.beyond)

    def draws(self, shape: tuple[int, ...], seed: int) -> NDArray[np.float64]:
        """Return draws of the mean as clipped: normal, as of many reports, and between the bounds."""
        ends = [(end - self.plain.mean) / self.plain.error for end in (self.low, self.high)]
        least, most = ndtr(ends)
        inside = least + (most - least) * np.random.default_rng(seed).random(shape)
        return np.asarray(np.clip(self.plain.mean + self.plain.error * ndtri(inside), self.low, self.high))

    def before(self, seed: int) -> NDArray[np.float64]:
        """Return what was known of it before: that it lies between the bounds."""
        return np.random.default_rng(seed).uniform(self.low, self.high, 1000)


def beyond_words(plain: PlainMean, beyond: float) -> str:
    """Say that a fitted law has too much mass, `beyond`, outside the bounds."""
    return (
        f"the fitted law puts {100 * beyond:.0f} % of people beyond the bounds, which no answer can confirm: "
        "its parameters rest on its shape there, and are wrong if many people answer the bound itself, often "
        f"zero. The answers as clipped to the bounds have, whatever their law, {plain.in_words()}; "
        "the model `nonparametric` needs no law"
    )
