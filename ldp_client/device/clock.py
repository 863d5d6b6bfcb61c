"""The device's clock, the windows in which reports leave together, and the limit of requests a minute.

The tables of the limit decide no answer, so the ledger's seal leaves them out, and the first request makes
them.
"""

import os
import sqlite3
import time
from random import SystemRandom

HOUR = 3600
MOST_REQUESTS = 15
# At most this many are deletions. The rest is for uploads, as a deletion is repeated until acknowledged.
MOST_DELETIONS = 10
PERIOD_SECONDS = 60.0
# The moments of all requests, and of the deletions among them.
_TABLES = ("attempts", "deletions")
# Draws which report leaves next, and when. `random` would repeat its draws in a program that seeds it.
CHANCE = SystemRandom()


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


def allows(connection: sqlite3.Connection, now: float, is_deletion: bool = False) -> bool:
    """Return True and count a request at `now` (seconds since 1970) if it may be made."""
    forget_moments(connection, now)
    limits = {"attempts": MOST_REQUESTS, **({"deletions": MOST_DELETIONS} if is_deletion else {})}
    for table, most in limits.items():
        if connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] >= most:
            return False
    for table in limits:
        connection.execute(f"INSERT INTO {table} VALUES (?)", (now,))
    return True


def forget_moments(connection: sqlite3.Connection, now: float) -> None:
    """Delete each request's moment after a minute: kept longer, it would tell when the person answered.

    A moment that is a minute in the future was noted before the clock was moved.
    """
    for table in _TABLES:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (moment REAL NOT NULL)")
        connection.execute(f"DELETE FROM {table} WHERE ABS(? - moment) >= ?", (now, PERIOD_SECONDS))
