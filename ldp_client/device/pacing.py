"""When a device may make requests: a limited number a minute, with relayed and clear requests far apart.

These tables decide no answer, so the ledger's seal leaves them out. A ledger made without them gets them at
its first request.
"""

import sqlite3
from random import SystemRandom

from ldp_client.device import clock

MOST_REQUESTS = 15
# At most this many are deletions. The rest is for uploads, as a deletion is repeated until acknowledged.
MOST_DELETIONS = 10
PERIOD_SECONDS = 60.0
# The moments of all requests, and of the deletions among them.
_TABLES = ("attempts", "deletions")
# After the collector saw this device's address, nothing leaves through a relay for this long, plus a random
# time of up to the same length: its time would reveal the sender. After a relayed request, the address stays
# hidden as long.
APART_SECONDS = 3600.0
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


def note_visit(connection: sqlite3.Connection) -> None:
    """Note until when nothing is relayed, as the collector is about to see this device's address."""
    _note(connection, "apart")


def apart_until(connection: sqlite3.Connection) -> float:
    """Return until when nothing may be relayed, as the collector saw this device lately; else 0."""
    return _until(connection, "apart")


def note_relayed(connection: sqlite3.Connection) -> None:
    """Note until when this device's address stays hidden, as a request leaves through a relay now."""
    _note(connection, "unseen")


def unseen_until(connection: sqlite3.Connection) -> float:
    """Return until when this device's address stays hidden, as a request was relayed lately; else 0."""
    return _until(connection, "unseen")


def _note(connection: sqlite3.Connection, table: str) -> None:
    _until(connection, table)
    connection.execute(f"DELETE FROM {table}")
    until = clock.within(clock.now() + APART_SECONDS, APART_SECONDS)
    connection.execute(f"INSERT INTO {table} VALUES (?)", (until,))


def _until(connection: sqlite3.Connection, table: str) -> float:
    """Return the noted time, 0 once it is over.

    A time too far ahead was noted before the clock was moved back, and is reduced.
    """
    now = clock.now()
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (until REAL NOT NULL)")
    connection.execute(f"DELETE FROM {table} WHERE until <= ?", (now,))
    connection.execute(f"UPDATE {table} SET until = MIN(until, ?)", (now + 2 * APART_SECONDS,))
    until: float = connection.execute(f"SELECT TOTAL(until) FROM {table}").fetchone()[0]
    return until


def is_late(connection: sqlite3.Connection, report_id: str) -> bool:
    """Return True the first time that a report is far overdue.

    Far means more than a window plus the longest wait after a visit. Perhaps the clock was set right just
    after the report got its token, or after the visit that fetched its study. The report then waits for one
    more window, and for as long as after a visit. A device that stays off for longer sends it then.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS late (report TEXT PRIMARY KEY)")
    connection.execute("DELETE FROM late WHERE report NOT IN (SELECT id FROM reports WHERE state <> 'sent')")
    if connection.execute("INSERT OR IGNORE INTO late VALUES (?)", (report_id,)).rowcount != 1:
        return False
    note_visit(connection)
    return True
