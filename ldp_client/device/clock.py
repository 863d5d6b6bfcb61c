"""The device's clock, and the windows in which reports leave together."""

import os
import time

HOUR = 3600


def now() -> float:
    """Seconds since 1970, UTC."""
    return time.time()


def within(start: float, seconds: float) -> int:
    """A second drawn evenly from those that follow a moment."""
    return int(start + seconds * int.from_bytes(os.urandom(6), "big") / (1 << 48))


def in_next_window(hours: int) -> int:
    """A second of the window after this one, drawn evenly; windows of so many hours begin at 1970, UTC."""
    seconds = hours * HOUR
    return within((now() // seconds + 1) * seconds, seconds)
