"""The device's memory: what was answered, what it cost, and what still has to be sent.

One SQLite file. A spend and its report are written in one transaction, durable before `record`
returns, so that a report can never leave without its spend, nor a spend exist without its report.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from schemas.errors import AlreadyAnsweredError, BudgetError, LedgerError

FILE_NAME = "ledger.sqlite3"
LAYOUT = 1
LOCK_SECONDS = 10.0

_TABLES = """
CREATE TABLE IF NOT EXISTS spent (
  study TEXT NOT NULL, question TEXT NOT NULL, version INTEGER NOT NULL, epsilon TEXT NOT NULL,
  PRIMARY KEY (study, question)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
  report_id TEXT PRIMARY KEY, collector TEXT NOT NULL, study TEXT NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
"""


class Spend:
    """One question answered: its study, the study's version, and the epsilon it cost."""

    def __init__(self, study: str, question: str, version: int, epsilon: Fraction) -> None:
        self.study = study
        self.question = question
        self.version = version
        self.epsilon = epsilon


class Queued:
    """A report that waits to be sent: its id, collector, study's id and the exact bytes to send.

    collector: base URL, "" where it was not known when the report was made.
    """

    def __init__(self, report_id: str, collector: str, study: str, body: str) -> None:
        self.report_id = report_id
        self.collector = collector
        self.study = study
        self.body = body


class Ledger:
    """The ledger in a folder of the device; created when missing.

    Any trouble with the file raises LedgerError: a device that cannot read its past refuses to answer.
    """

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, FILE_NAME)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise LedgerError(f"cannot make the folder {folder}: {error.strerror}") from None
        self._prepare_patiently()

    def _prepare_patiently(self) -> None:
        """Make the tables, also while another process does: SQLite does not wait for a mode switch."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                with self._open() as connection:
                    _prepare(connection)
                return
            except LedgerError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def spent(self) -> "list[Spend]":
        """All spends so far."""
        with self._open() as connection:
            rows = connection.execute("SELECT study, question, version, epsilon FROM spent").fetchall()
        return [
            Spend(study, question, version, Fraction(epsilon)) for study, question, version, epsilon in rows
        ]

    def record(self, spends: "list[Spend]", report: Queued, max_epsilon: Fraction) -> None:
        """Write spends and report together, or raise and write nothing.

        Raises AlreadyAnsweredError when a question was answered before, BudgetError when the
        total would exceed max_epsilon.
        """
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            _refuse_second_answers(connection, spends)
            _refuse_overspending(connection, spends, max_epsilon)
            connection.executemany(
                "INSERT INTO spent VALUES (?, ?, ?, ?)",
                [(spend.study, spend.question, spend.version, str(spend.epsilon)) for spend in spends],
            )
            row = (report.report_id, report.collector, report.study, report.body)
            connection.execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", row)
            connection.execute("COMMIT")

    def queued(self) -> "list[Queued]":
        """The reports that wait to be sent."""
        with self._open() as connection:
            rows = connection.execute("SELECT report_id, collector, study, body FROM outbox").fetchall()
        return [Queued(*row) for row in rows]

    def remove(self, report_id: str) -> None:
        """Forget a report that a collector has taken or refused for good; its spend stays."""
        with self._open() as connection:
            connection.execute("DELETE FROM outbox WHERE report_id = ?", (report_id,))

    @contextmanager
    def _open(self) -> "Iterator[sqlite3.Connection]":
        """A connection that is rolled back and closed on any error."""
        connection = None
        try:
            connection = sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except (sqlite3.Error, ValueError) as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from None
        finally:
            if connection is not None:
                connection.close()


def _prepare(connection: sqlite3.Connection) -> None:
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if layout == LAYOUT:
        return
    if layout != 0:
        raise LedgerError(f"the ledger has layout {layout}, this version of ldpkit knows {LAYOUT}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {LAYOUT}; COMMIT;")


def _refuse_second_answers(connection: sqlite3.Connection, spends: "list[Spend]") -> None:
    for spend in spends:
        key = (spend.study, spend.question)
        if connection.execute("SELECT 1 FROM spent WHERE study = ? AND question = ?", key).fetchone():
            raise AlreadyAnsweredError(f"{spend.study}: {spend.question}: this device has answered it before")


def _refuse_overspending(
    connection: sqlite3.Connection, spends: "list[Spend]", max_epsilon: Fraction
) -> None:
    before = sum((Fraction(row[0]) for row in connection.execute("SELECT epsilon FROM spent")), Fraction(0))
    asked = sum((spend.epsilon for spend in spends), Fraction(0))
    if before + asked > max_epsilon:
        left = float(max_epsilon - before)
        raise BudgetError(
            f"answering costs epsilon {float(asked):g}, but {left:g} of this device's budget is left"
        )
