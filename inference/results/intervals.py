"""Credible intervals of draws, and the formatting of their numbers."""

from math import floor, inf, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client.documents.errors import UsageError

# More than there are people: such a number is effectively unbounded.
MANY = 1e11
# The most decimals of a formatted number.
FINEST = 12
# The share of all people who prefer not to say, under any model of a question that offers refusal.
REFUSED = "refused"
# Statistics of a scale: the share of people at or below a level, and the mean of their places, from 1.
AT_MOST, PLACE = "at_most", "mean_place"


class Interval(NamedTuple):
    """The intervals to show, with equal tails. level: the probability that they hold."""

    level: float = 0.9

    @property
    def name(self) -> str:
        """Return the interval's name, such as "90 % interval"."""
        return f"{100 * self.level:g} % interval"

    @property
    def columns(self) -> tuple[str, str]:
        """Return the column names of its ends: quantiles are named as in posterior.json."""
        low, high = (f"{100 * level:04.1f}".replace(".0", "").replace(".", "") for level in self.levels)
        return f"q{low}", f"q{high}"

    @property
    def levels(self) -> tuple[float, float]:
        """Return the quantiles of its ends."""
        tail = round((1 - self.level) / 2, 12)
        return tail, 1 - tail

    def of(self, draws: NDArray[np.float64]) -> tuple[float, float]:
        """Return its ends, from draws of any shape."""
        low, high = np.quantile(draws, self.levels)
        return float(low), float(high)


USUAL = Interval()


def interval_of(level: object) -> Interval:
    """Return the interval of a level. Raises UsageError."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise UsageError(
            f"level must be a probability between 0 and 1, such as 0.9 for 90 %, not {level!r}",
            code="result.wrong_level",
        )
    return Interval(float(level))


def written(value: float, share: bool = False, width: float = inf) -> str:
    """Format a number for people: three digits, or per cent with one decimal for a share.

    width: of the accompanying interval; adds digits if the interval needs them.
    """
    if share:
        value, width = 100 * value, 100 * width
    # The decimals that show two digits of the width.
    finer = min(1 - floor(log10(width)), FINEST) if 0 < width < inf else -FINEST
    if share:
        text = f"{value:.{max(finer, 1)}f}"
    elif 0 < abs(value) < MANY and finer > 2 - floor(log10(abs(value))):
        text = f"{value:,.{max(finer, 0)}f}"
    elif 1000 <= abs(value) < MANY:
        text = f"{float(f'{value:.3g}'):,.0f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−")


def between(low: float, high: float, share: bool = False) -> str:
    """Format an interval for people."""
    return f"{written(low, share, high - low)} to {written(high, share, high - low)}{' %' * share}"


def in_words(draws: NDArray[np.float64], share: bool = False, interval: Interval = USUAL) -> tuple[str, str]:
    """Format median and interval of draws for a table."""
    low, high = interval.of(draws)
    return f"{written(float(np.median(draws)), share, high - low)}{' %' * share}", between(low, high, share)


def rounded_up(devices: float) -> int:
    """Two significant digits, upwards: more would promise too much."""
    step = 10 ** max(0, len(str(int(devices))) - 2)
    return int(-(-devices // step) * step)
