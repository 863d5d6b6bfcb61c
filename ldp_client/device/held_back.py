"""How long what waits for a relay holds fetches at its collector back: no longer than that helps.

A fetch keeps a report from its relay for an hour or two. A command that runs daily would keep it for good,
so that it fetches nothing that was answered while a report waits. A relay that is gone would then hold the
fetches for good instead: after so many days chance takes turns. Right after a request through one nothing is
fetched, whether it succeeded or not. What is kept for that decides no answer, so that the ledger's seal
leaves it out; it is forgotten at the next flush once the report is concluded, or its deletion is asked for.
A ledger that was made without this table gets it here.
"""

import sqlite3

from ldp_client.device import clock
from ldp_client.device.channels import Channels
from ldp_client.device.outbox import pending, withdrawn
from ldp_client.device.pacing import CHANCE, unseen_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from ldp_client.device.ledger import Ledger
    from ldp_client.device.outbox import Queued

MOST_DAYS = 30
DAY = 86_400


def note_overdue(connection: sqlite3.Connection) -> None:
    """Note the first day of whatever is due to leave through its relay now, and forget what waits no more.

    A report and its deletion have a day each: the relay may be gone since the report left.
    """
    _forget(connection)
    today = clock.now() // DAY
    rows = [(one.report_id, not one.body, today) for one in _relayed(connection) if one.due <= clock.now()]
    connection.executemany("INSERT OR IGNORE INTO due_since VALUES (?, ?, ?)", rows)


def holds_fetches(ledger: "Ledger", collector: str) -> bool:
    """Whether anything waits for a relay that a fetch at this collector would keep waiting, or tell of; or
    has just left through one.
    """
    with ledger.writing() as connection:
        _forget(connection)
        # A fetch would tell whose that was, whatever still waits, and wherever it went.
        if unseen_until(connection):
            return True
        relayed = [one for one in _relayed(connection) if one.collector == collector]
        rows = connection.execute("SELECT report, is_deletion, since FROM due_since").fetchall()
    days = {(report, bool(is_deletion)): since for report, is_deletion, since in rows}
    return any([_holds(one, days.get((one.report_id, not one.body))) for one in relayed])


def _relayed(connection: sqlite3.Connection) -> "list[Queued]":
    """What waits to leave through a relay."""
    channels = Channels(connection)
    return [one for one in (*pending(connection), *withdrawn(connection)) if channels.is_relayed(one)]


def _holds(report: "Queued", since: "Optional[int]") -> bool:
    now = clock.now()
    # A day that is still to come was noted before the clock was moved back.
    if since is None or now - min(since * DAY, now) < MOST_DAYS * DAY:
        return True
    # Nor may a command that runs daily keep it from its relay for good: chance has either go first.
    return report.due <= now and bool(CHANCE.getrandbits(1))


def _forget(connection: sqlite3.Connection) -> None:
    """Delete the days of what waits no more."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS due_since (report TEXT, is_deletion INTEGER, since INTEGER NOT NULL,"
        " PRIMARY KEY (report, is_deletion))"
    )
    waits = "state IN ('queued', 'trying', 'withdrawn') AND (state = 'withdrawn') = is_deletion"
    known = f"SELECT 1 FROM reports WHERE id = report AND {waits}"
    connection.execute(f"DELETE FROM due_since WHERE NOT EXISTS ({known})")
