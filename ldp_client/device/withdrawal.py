"""Withdrawing from a study."""

import sqlite3

from ldp_client.device.memory import WIPED
from ldp_client.device.outbox import withdraw_reports


def withdraw(connection: sqlite3.Connection, study_id: str) -> int:
    """Wipe the device's answers to a study; returns how many reports the collector must delete.

    Spends stay: what a collector may have learnt is not unlearnt, and no question is answered again.
    """
    connection.execute("DELETE FROM consents WHERE study = ?", (study_id,))
    connection.execute("UPDATE permanent SET answer = ? WHERE study = ?", (WIPED, study_id))
    return withdraw_reports(connection, study_id)
