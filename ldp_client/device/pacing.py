"""How many requests a device makes a minute, so that a mistake of a program floods no collector."""

import sqlite3

MOST_REQUESTS = 15
# Of these. The others are kept for uploads, as a deletion is asked for until it is acknowledged.
MOST_DELETIONS = 10
PERIOD_SECONDS = 60.0
# Of all requests, and of the deletions among them.
_TABLES = ("attempts", "deletions")


def allows(connection: sqlite3.Connection, now: float, is_deletion: bool = False) -> bool:
    """Count one more request now (seconds since 1970) if it may be made: whether it may."""
    forget_moments(connection, now)
    limits = {"attempts": MOST_REQUESTS, **({"deletions": MOST_DELETIONS} if is_deletion else {})}
    for table, most in limits.items():
        if connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] >= most:
            return False
    for table in limits:
        connection.execute(f"INSERT INTO {table} VALUES (?)", (now,))
    return True


def forget_moments(connection: sqlite3.Connection, now: float) -> None:
    """Delete when requests were made, a minute later: for longer it would tell when somebody answered.

    A moment that is a minute in the future was noted before the clock was moved.
    """
    for table in _TABLES:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (moment REAL NOT NULL)")
        connection.execute(f"DELETE FROM {table} WHERE ABS(? - moment) >= ?", (now, PERIOD_SECONDS))
