"""How many requests a device makes in a minute, whichever of its processes makes them.

The moments are kept in the ledger's file, for a minute. They decide no answer, so that the seal leaves
them out; a ledger that was made without them gets their table at its first request.
"""

import sqlite3

MOST_REQUESTS = 15
PERIOD_SECONDS = 60.0
_TABLE = "CREATE TABLE IF NOT EXISTS attempts (moment REAL NOT NULL)"


def allows(connection: sqlite3.Connection, now: float) -> bool:
    """Whether one more request may be made now (seconds since 1970); if so it is counted.

    A moment that is a minute in the future was noted before the clock was moved: it is forgotten.
    """
    connection.execute(_TABLE)
    connection.execute("DELETE FROM attempts WHERE ABS(? - moment) >= ?", (now, PERIOD_SECONDS))
    if connection.execute("SELECT COUNT(*) FROM attempts").fetchone()[0] >= MOST_REQUESTS:
        return False
    connection.execute("INSERT INTO attempts VALUES (?)", (now,))
    return True
