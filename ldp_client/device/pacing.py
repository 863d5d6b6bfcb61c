"""When a device makes requests: so many a minute, and none through a relay beside one in the clear.

What is kept for that decides no answer, so that the ledger's seal leaves it out; a ledger that was made
without these tables gets them at its first request.
"""

import sqlite3
from random import SystemRandom

from ldp_client.device import clock

MOST_REQUESTS = 15
# Of these. The others are kept for uploads, as a deletion is asked for until it is acknowledged.
MOST_DELETIONS = 10
PERIOD_SECONDS = 60.0
# Of all requests, and of the deletions among them.
_TABLES = ("attempts", "deletions")
# After the collector saw this device's address nothing leaves through a relay for so long, and for up to as
# long again, as chance has it: its time would tell whose it is. Nor is the address shown after that did.
APART_SECONDS = 3600.0
# Who leaves next, and when: a program that seeds `random` at each start would draw the same for ever.
CHANCE = SystemRandom()


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


def note_visit(connection: sqlite3.Connection) -> None:
    """Note until when nothing is relayed, as the collector is about to see this device's address."""
    _note(connection, "apart")


def apart_until(connection: sqlite3.Connection) -> float:
    """Until when nothing may leave through a relay, as the collector saw this device lately; else 0."""
    return _until(connection, "apart")


def note_relayed(connection: sqlite3.Connection) -> None:
    """Note until when nothing of the device's is seen, as a request leaves through a relay now."""
    _note(connection, "unseen")


def unseen_until(connection: sqlite3.Connection) -> float:
    """Until when nothing may show this device's address, as something left through a relay lately; else 0."""
    return _until(connection, "unseen")


def _note(connection: sqlite3.Connection, table: str) -> None:
    _until(connection, table)
    connection.execute(f"DELETE FROM {table}")
    until = clock.within(clock.now() + APART_SECONDS, APART_SECONDS)
    connection.execute(f"INSERT INTO {table} VALUES (?)", (until,))


def _until(connection: sqlite3.Connection, table: str) -> float:
    """What was noted, 0 once it is over. What lies too far ahead was before the clock was moved back."""
    now = clock.now()
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (until REAL NOT NULL)")
    connection.execute(f"DELETE FROM {table} WHERE until <= ?", (now,))
    connection.execute(f"UPDATE {table} SET until = MIN(until, ?)", (now + 2 * APART_SECONDS,))
    until: float = connection.execute(f"SELECT TOTAL(until) FROM {table}").fetchone()[0]
    return until


def is_late(connection: sqlite3.Connection, report_id: str) -> bool:
    """Whether a report is overdue by far for the first time: by more than a window, and what a visit
    keeps it for.

    Perhaps its clock was set right just after its token, or the visit that its study came with: it waits for
    one more window, and for as long as after a visit. A device that is off for longer sends it then.
    """
    connection.execute("CREATE TABLE IF NOT EXISTS late (report TEXT PRIMARY KEY)")
    connection.execute("DELETE FROM late WHERE report NOT IN (SELECT id FROM reports WHERE state <> 'sent')")
    if connection.execute("INSERT OR IGNORE INTO late VALUES (?)", (report_id,)).rowcount != 1:
        return False
    note_visit(connection)
    return True
