"""The device's clock, and the windows in which reports leave together."""

import os
import time

HOUR = 3600


def now() -> float:
    """Return the seconds since 1970, UTC."""
    return time.time()


def within(start: float, seconds: float) -> int:
    """Return a second drawn evenly from the `seconds` after `start`."""
    return int(start + seconds * int.from_bytes(os.urandom(6), "big") / (1 << 48))


def in_next_window(hours: int) -> int:
    """Return a second drawn evenly from the next window.

    Windows last `hours` hours each, counted from 1970, UTC.
    """
    seconds = hours * HOUR
    return within((now() // seconds + 1) * seconds, seconds)
