"""Mean and sd of the answers as clipped to their bounds, which noise leaves visible whatever their law.

A law says more than that: how answers would lie beyond the bounds. Where its numbers rest on that, or where
nothing in the reports could show that the law is another, both must stand side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.models.totals import SQUARE_WEIGHT

# A law with more than this beyond the bounds says things that no answer shows.
BEYOND = 0.05
# Standard errors to each side in a stated interval of 90 %.
_NINETY = 1.645
TWO_SUMS = (
    "the sums of a number and of its square cannot show whether answers follow this law: any two sums fit "
    "one, and no check here could find that it is wrong. Its parameters are right if it is; ask a question "
    "with `cells` where that is not known"
)


class PlainMean(NamedTuple):
    """Of clipped answers in own units: mean, its standard error, and sd (NaN where noise hides it)."""

    mean: float
    error: float
    sd: float = math.nan

    def in_words(self) -> str:
        """Mean, its interval of 90 % and the sd, in words."""
        low, high = (f"{self.mean + side * _NINETY * self.error:.4g}" for side in (-1, 1))
        spread = "" if math.isnan(self.sd) else f" and sd {self.sd:.4g}"
        return f"mean {self.mean:.4g} (90 % interval {low} to {high}){spread}"


def pooled(means: Sequence[tuple[int, PlainMean]]) -> PlainMean:
    """Of all people in samples of their own, (n, plain mean) of each: weighted by how many they are."""
    shares = np.asarray([n for n, _ in means]) / sum(n for n, _ in means)
    mean = float(shares @ np.asarray([one.mean for _, one in means]))
    error = float(np.sqrt(shares**2 @ np.asarray([one.error**2 for _, one in means])))
    within = shares @ np.asarray([one.sd**2 + (one.mean - mean) ** 2 for _, one in means])
    return PlainMean(mean, error, float(np.sqrt(within)))


def of_two_sums(total: NDArray[np.float64], n: int, noise_sd: float, zero: float, unit: float) -> PlainMean:
    """From the noisy sums (2,) of u and of its weighted square, answers being zero + unit × u, u in −1…1."""
    first, second = total / n
    variance = second / SQUARE_WEIGHT - first**2
    # Of the variance, to first order: w is above 1, and |u| at most 1.
    noise = noise_sd / n * math.sqrt(1 / SQUARE_WEIGHT**2 + 4 * first**2)
    error = math.sqrt((noise_sd / n) ** 2 + max(variance, 0.0) / n)
    sd = math.sqrt(variance) if variance > 2 * noise else math.nan
    return PlainMean(zero + unit * first, unit * error, unit * sd)


def two_sums_notes(means: dict[str, PlainMean]) -> tuple[str, ...]:
    """What must be said of a law fitted to two sums; {field, or "" for a lone number: its plain mean}."""
    if not means:
        return ()
    listed = "; ".join(f"{name}: {one.in_words()}" if name else one.in_words() for name, one in means.items())
    return (f"{TWO_SUMS}. The answers as clipped to the bounds have, whatever their law, {listed}",)


def beyond_notes(plain: PlainMean, beyond: float) -> tuple[str, ...]:
    """What must be said where the fitted law has so much of itself, `beyond`, outside the bounds."""
    if beyond <= BEYOND:
        return ()
    return (
        f"the law fitted has {100 * beyond:.0f} % of people beyond the bounds, where no answer shows them: "
        "its parameters rest on its shape there, and are wrong where many people answer the bound itself, as "
        f"zero often is. The answers as clipped to the bounds have, whatever their law, {plain.in_words()}; "
        "the model `free` needs no law",
    )
