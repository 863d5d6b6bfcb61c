"""Binomial laws in integers, rounded outward: what a certified bound is added up from.

Probabilities are integers over 2**WORK_BITS. A law is held on a window around its mode, and what lies outside
is bounded as a whole; its weights follow from the mode's by exact ratios, each rounded down and up, and are
divided by their sum, so that no factorial is ever approximated.
"""

from __future__ import annotations

from collections.abc import Iterator

WORK_BITS = 128
ONE = 1 << WORK_BITS
# Weights below this part of the mode's are not told apart.
TAIL_BITS = 64
_LEAST = 1 << (WORK_BITS - TAIL_BITS)


class Window:
    """The probabilities of Binomial(trials, often / (often + seldom)) from `first` on, enclosed.

    low, high: lists of integers over 2**WORK_BITS. outside: at least the probability of all other values.
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
        """An upper bound of the probability of a value."""
        place = value - self.first
        # Beyond the window no value is likelier than all of them together.
        return self.high[place] if 0 <= place < len(self.high) else self.outside

    def from_on(self, value: int) -> int:
        """A lower bound of the probability of this value or a larger one."""
        return sum(self.low[max(0, value - self.first) :])


def _walk(steps: int, toward: int, count: int, away: int) -> Iterator[tuple[int, int]]:
    """Weights of the values beside the mode, the mode's being one, each (rounded down, rounded up).

    One step further the weight is times left · toward / ((count − left) · away), left being how many steps
    are still possible.
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
    """All weights beyond an end of the window: ratios only fall, so a geometric series bounds them."""
    last = high[end]
    if len(high) < 2 or last >= high[before]:
        # The window is the mode alone, and what follows it was too small to be kept.
        return _LEAST << 8
    return -(-last * last // (high[before] - last)) + 1
