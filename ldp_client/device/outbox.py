"""The reports of a device, from the noise to their deletion.

A report is "queued" until it is tried for the first time, then "trying" until the collector has
taken it, then "sent", or "refused" for good: without its body, but with its id, so that its deletion
can still be asked for. Also of a refused one, as an earlier attempt may have arrived, or a share of it.
"withdrawn" ones are asked to be deleted until the collector says that they are.
"""

import sqlite3

from ldp_client.device import clock
from ldp_client.device.channels import Channels, forget_tokens, postpone
from ldp_client.device.known_studies import OF_PUBLISHER, shown_publisher
from ldp_client.device.ledger_layout import digest_of
from ldp_client.documents.errors import InputError, LedgerError, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.device.known_studies import Publisher
    from ldp_client.documents.report import Report
    from ldp_client.documents.study import Study

MOST_PENDING = 500
MOST_BYTES = 1 << 20
# Seconds in a week: a later moment than this was not drawn, the clock was moved.
LONGEST_WINDOW = 7 * 86_400
# What waits for its token before it has a moment of its own.
_AWAITS = """document IN (SELECT document FROM channels WHERE channel LIKE '%"tokens"%')"""
_SELECTED = (
    "id, collector, study, body, due, invitation, secret, version, document, closes, publisher, digest"
)


class Queued:
    """A report that waits to be sent: its id, collector, study's id, the exact bytes, and when it is due.

    collector: base URL, "" where it was not known when the report was made; for a secure sum the
    base URLs of its nodes. due: seconds since 1970, 0 for at once. invitation: for a study that
    takes invited reports only. secret: in hexadecimal digits, what a deletion has to present; "" for a report
    that was made before there were secrets. version, document, closes: of the study that was answered,
    its digest and its last day ("" for none). publisher: whose study that is, "" for unknown. A report whose
    deletion is asked for has no body.
    """

    def __init__(
        self,
        report_id: str,
        collector: str,
        study: str,
        body: str,
        due: int = 0,
        invitation: str = "",
        secret: str = "",
        version: int = 0,
        document: str = "",
        closes: str = "",
        publisher: str = "",
    ) -> None:
        self.report_id = report_id
        self.collector = collector
        self.study = study
        self.body = body
        self.due = due
        self.invitation = invitation
        self.secret = secret
        self.version = version
        self.document = document
        self.closes = closes
        self.publisher = publisher

    @classmethod
    def of(
        cls, study: "Study", report: "Report", collector: str, body: str, due: int, invitation: str = ""
    ) -> "Queued":
        """A fresh report, as it will leave for this collector, or these nodes."""
        asked = (study.version, study.digest, study.closes or "")
        return cls(report.id, collector, study.id, body, due, invitation, report.secret.hex(), *asked)

    @property
    def nodes(self) -> "list[str]":
        """The nodes of a secure sum; empty for a report that goes to one collector."""
        return self.collector.split(" ") if " " in self.collector else []


def due_of(study: "Study", window: float) -> int:
    """When a report that is made now leaves; 0 for at once, or for when a token is there, which draws a time.

    window: the device's own, of which a study knows better that says how reports leave.
    """
    if study.channel is None:
        return due_within(window)
    return 0 if study.channel.tokens else clock.in_next_window(study.channel.hours)


def plain_window(given: float) -> float:
    """Of `Device(send_window=…)`. Raises InputError."""
    if not isinstance(given, (int, float)) or not 0 <= given <= LONGEST_WINDOW:
        raise InputError.say("device.send_window", longest=LONGEST_WINDOW)
    return given


def due_within(window: float) -> int:
    """When to send a report that is made now: a second drawn evenly from the window, 0 for at once."""
    return 0 if window <= 0 else clock.within(clock.now(), window)


def is_due(report: Queued, longest: float = LONGEST_WINDOW) -> bool:
    """Also where the clock was moved so far back that the time would never come: more than `longest`."""
    wait = report.due - clock.now()
    return wait <= 0 or wait > longest


def refuse_full(connection: sqlite3.Connection) -> None:
    """Raises RefusedError while as many reports wait as a device may hold."""
    query = "SELECT COUNT(*) FROM reports WHERE state IN ('queued', 'trying')"
    if connection.execute(query).fetchone()[0] >= MOST_PENDING:
        raise RefusedError.say("device.outbox_full", most=MOST_PENDING)


def enqueue(connection: sqlite3.Connection, report: Queued) -> None:
    """Add a report. Raises RefusedError for one that is too large to send."""
    if len(report.body) > MOST_BYTES:
        raise RefusedError.say("device.report_large", size=len(report.body), most=MOST_BYTES)
    digest = digest_of(report.body)
    whose = (report.report_id, report.secret, report.collector, report.publisher)
    asked = (report.study, report.version, report.document, report.closes)
    row = (*whose, *asked, "queued", report.due, digest, report.body, report.invitation)
    connection.execute("INSERT INTO reports VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def invite(connection: sqlite3.Connection, study_id: str, publisher: "Publisher", invitation: str) -> None:
    """Give one of the study's waiting reports another invitation, as it lets one in: the latest version's.

    One that has none comes first; none is changed where one has that invitation already. "" takes
    those of all.
    """
    has_token = "id IN (SELECT report FROM tokens WHERE token <> '')"
    waiting = f"{OF_PUBLISHER} AND state IN ('queued', 'trying') AND NOT {has_token}"
    query = f"SELECT id, invitation FROM reports WHERE {waiting} ORDER BY invitation = '' DESC, version DESC"
    rows = connection.execute(query, publisher.of(study_id)).fetchall()
    given = [] if invitation in [kept for _, kept in rows] else rows[:1]
    for report_id, _ in given if invitation else rows:
        connection.execute("UPDATE reports SET invitation = ? WHERE id = ?", (invitation, report_id))
        # A request for a token that was put off is one for another code now.
        connection.execute(f"UPDATE reports SET due = 0 WHERE id = ? AND {_AWAITS}", (report_id,))
        # Of another stratum, perhaps: the issuer may name its key.
        connection.execute("UPDATE tokens SET turned = 0 WHERE report = ?", (report_id,))


def pending(connection: sqlite3.Connection) -> "list[Queued]":
    """The reports that wait to be sent, in the random order of their ids. Raises LedgerError."""
    return _select(connection, "state IN ('queued', 'trying')")


def withdrawn(connection: sqlite3.Connection) -> "list[Queued]":
    """The reports whose deletion is not acknowledged yet."""
    return _select(connection, "state = 'withdrawn'")


def _select(connection: sqlite3.Connection, which: str) -> "list[Queued]":
    rows = connection.execute(f"SELECT {_SELECTED} FROM reports WHERE {which} ORDER BY id").fetchall()
    if any([not isinstance(row[3], str) or digest_of(row[3]) != row[11] for row in rows]):
        raise LedgerError.say("device.report_changed")
    return [Queued(*row[:11]) for row in rows]


def untried(connection: sqlite3.Connection) -> "set[str]":
    """The ids of the reports and deletions that no request was made for yet."""
    query = "SELECT id FROM reports WHERE state = 'queued' OR (state = 'withdrawn' AND due = 0)"
    return {row[0] for row in connection.execute(query).fetchall()}


def note_asked(connection: sqlite3.Connection, report_id: str) -> None:
    """A deletion was asked for that no batch waits for: from now on it is one that was tried."""
    query = "UPDATE reports SET due = 1 WHERE id = ? AND state = 'withdrawn' AND due = 0"
    connection.execute(query, (report_id,))


def try_now(connection: sqlite3.Connection, report_id: str, collector: str) -> bool:
    """Note that the report may leave from now on, for that collector; False where it was withdrawn meanwhile.

    A report that knew no collector belongs to the first one that it is sent to: only that one can delete it.
    """
    mine = "collector = CASE collector WHEN '' THEN ? ELSE collector END"
    query = f"UPDATE reports SET state = 'trying', {mine} WHERE id = ? AND state IN ('queued', 'trying')"
    return connection.execute(query, (collector, report_id)).rowcount == 1


def note_sent(connection: sqlite3.Connection, report_id: str) -> None:
    """The collector has it: only its id is kept, unless it was withdrawn meanwhile."""
    _conclude(connection, report_id, "sent")


def note_refused(connection: sqlite3.Connection, report_id: str) -> None:
    """It is not sent again, and only its id is kept, unless it was withdrawn meanwhile."""
    _conclude(connection, report_id, "refused")


def note_undeletable(connection: sqlite3.Connection, report_id: str) -> None:
    """A sum's nodes keep it: its deletion is asked for no more, unless the person withdraws again."""
    query = "UPDATE reports SET state = 'sent', due = 0 WHERE id = ? AND state = 'withdrawn'"
    connection.execute(query, (report_id,))


def _conclude(connection: sqlite3.Connection, report_id: str, state: str) -> None:
    wiped = "state = ?, due = 0, digest = ?, body = '', invitation = ''"
    query = f"UPDATE reports SET {wiped} WHERE id = ? AND state = 'trying'"
    connection.execute(query, (state, digest_of(""), report_id))
    forget_tokens(connection)


def drop(connection: sqlite3.Connection, report_id: str) -> None:
    """Forget a report that a collector has deleted; its spend stays."""
    connection.execute("DELETE FROM reports WHERE id = ?", (report_id,))


def publishers_at(connection: sqlite3.Connection, study_id: str, collector: str) -> "list[str]":
    """The publishers whose study of that id was answered with reports for a collector, shares too."""
    # A blank stands between the nodes of a sum.
    here = "INSTR(' ' || collector || ' ', ' ' || ? || ' ')"
    query = f"SELECT DISTINCT publisher FROM reports WHERE study = ? AND {here}"
    return [row[0] for row in connection.execute(query, (study_id, collector)).fetchall()]


def reports_of_others(connection: sqlite3.Connection, study_id: str, publisher: "Publisher") -> "list[str]":
    """Where the reports to other publishers' studies of that id belong, but those that are taken back."""
    query = "SELECT DISTINCT publisher, collector FROM reports WHERE study = ? AND state <> 'withdrawn'"
    rows = connection.execute(query, (study_id,)).fetchall()
    return sorted({shown_publisher(*row) for row in rows if not publisher.is_own(row[0])})


def withdraw_reports(connection: sqlite3.Connection, study_id: str, publisher: "Publisher") -> int:
    """Wipe the study's reports; those that may have left are to be deleted. How many these are.

    A deletion leaves as the report did: by itself it would tell whose that was.
    """
    its = publisher.of(study_id)
    connection.execute(f"DELETE FROM reports WHERE {OF_PUBLISHER} AND state = 'queued'", its)
    # One that is asked for already keeps its time, however often the person withdraws.
    asked = {report.report_id for report in withdrawn(connection)}
    fresh = f"{OF_PUBLISHER} AND state <> 'withdrawn'"
    connection.execute(f"UPDATE reports SET due = 0 WHERE {fresh}", its)
    wiped = "state = 'withdrawn', digest = ?, body = '', invitation = ''"
    query = f"UPDATE reports SET {wiped} WHERE {OF_PUBLISHER}"
    count = connection.execute(query, (digest_of(""), *its)).rowcount
    forget_tokens(connection)
    channels = Channels(connection)
    for report in withdrawn(connection):
        channel = channels.of(report)
        if report.report_id not in asked and channel is not None:
            postpone(connection, report.report_id, channel.hours)
    return count
