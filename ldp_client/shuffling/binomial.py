"""Binomial laws in integers, rounded outward, for certified bounds.

Probabilities are integers over 2**WORK_BITS. A law is stored on a window around its mode, with one bound for
all values outside. Its weights follow from the mode's weight by exact ratios, each rounded down and up. They
are divided by their sum, so no factorial is approximated.
"""

from __future__ import annotations

from collections.abc import Iterator

WORK_BITS = 128
ONE = 1 << WORK_BITS
# Weights below this fraction of the mode's weight are lumped together.
TAIL_BITS = 64
_LEAST = 1 << (WORK_BITS - TAIL_BITS)


class Window:
    """Bounds on the probabilities of Binomial(trials, often / (often + seldom)) from `first` on.

    low, high: lists of integers over 2**WORK_BITS. outside: an upper bound for all other values together.
    """

    def __init__(self, trials: int, often: int, seldom: int) -> None:
        mode = min(trials, (trials + 1) * often // (often + seldom))
        down = list(_walk(mode, seldom, trials + 1, often))
        up = list(_walk(trials - mode, often, trials + 1, seldom))
        self.first = mode - len(down)
        low = [pair[0] for pair in reversed(down)] + [ONE] + [pair[0] for pair in up]
        high = [pair[1] for pair in reversed(down)] + [ONE] + [pair[1] for pair in up]
        beyond = 0
        if len(down) < mode:
            beyond += _rest(high, 0, 1)
        if len(up) < trials - mode:
            beyond += _rest(high, -1, -2)
        least, most = sum(low), sum(high) + beyond
        self.low = [(weight << WORK_BITS) // most for weight in low]
        self.high = [-(-(weight << WORK_BITS) // least) for weight in high]
        self.outside = -(-(beyond << WORK_BITS) // least)

    def at_most(self, value: int) -> int:
        """Return an upper bound on the probability of a value."""
        place = value - self.first
        # A value beyond the window is at most as likely as all such values together.
        return self.high[place] if 0 <= place < len(self.high) else self.outside

    def from_on(self, value: int) -> int:
        """Return a lower bound on the probability of this value or a larger value."""
        return sum(self.low[max(0, value - self.first) :])


def _walk(steps: int, toward: int, count: int, away: int) -> Iterator[tuple[int, int]]:
    """Yield the weights (rounded down, rounded up) of the values next to the mode, whose weight is 1.

    Each step multiplies the weight by left · toward / ((count − left) · away), where left is the number of
    possible steps.
    """
    low = high = ONE
    for left in range(steps, 0, -1):
        times, over = left * toward, (count - left) * away
        low = low * times // over
        high = -(-high * times // over)
        if high < _LEAST:
            return
        yield low, high


def _rest(high: list[int], end: int, before: int) -> int:
    """Bound all weights beyond an end of the window by a geometric series, because ratios only decrease."""
    last = high[end]
    if len(high) < 2 or last >= high[before]:
        # The window is the mode alone: the next weight was too small to keep.
        return _LEAST << 8
    return -(-last * last // (high[before] - last)) + 1
