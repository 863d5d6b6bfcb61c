"""How long what waits for a relay holds fetches at its collector back: no longer than that helps.

A fetch keeps a report from its relay for an hour or two. A command that runs daily would keep it for good,
so that it fetches nothing that was answered while a report waits. A relay that is gone would then hold the
fetches for good instead: after so many days chance takes turns. What is kept for that decides no answer,
and is forgotten once the report is concluded, at the next flush.
"""

import random
import sqlite3

from ldp_client.device import clock
from ldp_client.device.channels import Channels
from ldp_client.device.outbox import pending, withdrawn
from ldp_client.device.pacing import APART_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from ldp_client.device.ledger import Ledger
    from ldp_client.device.outbox import Queued

MOST_DAYS = 30
DAY = 86_400


def note_overdue(connection: sqlite3.Connection, report_id: str) -> None:
    """Note the first day on which a report, or its deletion, was due to leave through its relay."""
    _make(connection)
    row = (report_id, clock.now() // DAY)
    connection.execute("INSERT OR IGNORE INTO overdue VALUES (?, ?, 0)", row)


def note_relayed(connection: sqlite3.Connection, report_id: str) -> None:
    """Note until when nothing of the device's is seen, as a request leaves through a relay now."""
    note_overdue(connection, report_id)
    until = clock.within(clock.now() + APART_SECONDS, APART_SECONDS)
    connection.execute("UPDATE overdue SET until = ? WHERE report = ?", (until, report_id))


def forget_concluded(connection: sqlite3.Connection) -> None:
    """Delete the days of what waits no more."""
    _make(connection)
    waits = "SELECT id FROM reports WHERE state IN ('queued', 'trying', 'withdrawn')"
    connection.execute(f"DELETE FROM overdue WHERE report NOT IN ({waits})")


def holds_fetches(ledger: "Ledger", collector: str) -> bool:
    """Whether anything waits for a relay that a fetch at this collector would keep waiting, or tell of."""
    with ledger.writing() as connection:
        forget_concluded(connection)
        channels = Channels(connection)
        waiting = [*pending(connection), *withdrawn(connection)]
        relayed = [one for one in waiting if one.collector == collector and channels.is_relayed(one)]
        held = connection.execute("SELECT report, since, until FROM overdue").fetchall()
    known = {report: (since, until) for report, since, until in held}
    return any([_holds(report, known.get(report.report_id)) for report in relayed])


def _holds(report: "Queued", known: "Optional[tuple[int, float]]") -> bool:
    now = clock.now()
    # A day that is still to come was noted before the clock was moved back.
    if known is None or now - min(known[0] * DAY, now) < MOST_DAYS * DAY:
        return True
    # Right after a request through a relay, which may have arrived, a fetch would tell whose it was.
    if now < known[1] <= now + 2 * APART_SECONDS:
        return True
    # Nor may a command that runs daily keep it from its relay for good: chance has either go first.
    return report.due <= now and bool(random.getrandbits(1))


def _make(connection: sqlite3.Connection) -> None:
    columns = "report TEXT PRIMARY KEY, since INTEGER NOT NULL, until REAL NOT NULL"
    connection.execute(f"CREATE TABLE IF NOT EXISTS overdue ({columns})")
