"""When a device may make requests: a limited number a minute.

These tables decide no answer, so the ledger's seal leaves them out. A ledger made without them gets them at
its first request.
"""

import sqlite3
from random import SystemRandom

MOST_REQUESTS = 15
# At most this many are deletions. The rest is for uploads, as a deletion is repeated until acknowledged.
MOST_DELETIONS = 10
PERIOD_SECONDS = 60.0
# The moments of all requests, and of the deletions among them.
_TABLES = ("attempts", "deletions")
# Draws which report leaves next, and when. `random` would repeat its draws in a program that seeds it.
CHANCE = SystemRandom()


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
