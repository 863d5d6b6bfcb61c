"""How long reports that wait for a relay may hold back fetches from their collector.

A fetch keeps a report from its relay for an hour or two. A command that fetches daily would delay the report
forever, so it does not fetch an answered study while a report waits. A relay that is gone would then block
fetches forever. After MOST_DAYS days, chance decides which goes first. Right after a request through a relay
nothing is fetched, whether the request succeeded or not.

This table decides no answer, so the ledger's seal leaves it out. The next flush deletes a row once its report
is concluded or withdrawn. A ledger made without this table gets it here.
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
    """Note the first day that each relayed report or deletion is due, and forget those no longer waiting.

    A report and its deletion have separate days: the relay may be gone since the report left.
    """
    _forget(connection)
    today = clock.now() // DAY
    rows = [(one.report_id, not one.body, today) for one in _relayed(connection) if one.due <= clock.now()]
    connection.executemany("INSERT OR IGNORE INTO due_since VALUES (?, ?, ?)", rows)


def holds_fetches(ledger: "Ledger", collector: str) -> bool:
    """Return True if a report waits for a relay and a fetch at this collector would delay or expose it.

    Also return True if a request has just left through a relay.
    """
    with ledger.writing() as connection:
        _forget(connection)
        # A fetch now would reveal who sent that request, whatever still waits and wherever the request went.
        if unseen_until(connection):
            return True
        relayed = [one for one in _relayed(connection) if one.collector == collector]
        rows = connection.execute("SELECT report, is_deletion, since FROM due_since").fetchall()
    days = {(report, bool(is_deletion)): since for report, is_deletion, since in rows}
    return any([_holds(one, days.get((one.report_id, not one.body))) for one in relayed])


def _relayed(connection: sqlite3.Connection) -> "list[Queued]":
    """Return the reports and deletions that wait to leave through a relay."""
    channels = Channels(connection)
    return [one for one in (*pending(connection), *withdrawn(connection)) if channels.is_relayed(one)]


def _holds(report: "Queued", since: "Optional[int]") -> bool:
    now = clock.now()
    # A day in the future was noted before the clock was moved back.
    if since is None or now - min(since * DAY, now) < MOST_DAYS * DAY:
        return True
    # A command that fetches daily must not block the relay forever: chance decides which goes first.
    return report.due <= now and bool(CHANCE.getrandbits(1))


def _forget(connection: sqlite3.Connection) -> None:
    """Delete the days of reports and deletions that no longer wait."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS due_since (report TEXT, is_deletion INTEGER, since INTEGER NOT NULL,"
        " PRIMARY KEY (report, is_deletion))"
    )
    waits = "state IN ('queued', 'trying', 'withdrawn') AND (state = 'withdrawn') = is_deletion"
    known = f"SELECT 1 FROM reports WHERE id = report AND {waits}"
    connection.execute(f"DELETE FROM due_since WHERE NOT EXISTS ({known})")
