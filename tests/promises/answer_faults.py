"""Faults of a device by which it answers twice, or spends for nothing."""

from __future__ import annotations

import sqlite3
from typing import Any

from ldp_client import Device
from ldp_client.device import budget as budget_module
from ldp_client.device.budget import Terms
from ldp_client.device.ledger import reseal
from schemas import Study
from tests.promises.watched_ledger import NOTHING, Patch, Watched, without


def commit_reports_first(monkeypatch: Patch) -> None:
    """The ledger commits the report, and the spend in a transaction of its own behind it."""
    late: list[tuple[Any, ...]] = []
    execute = Watched.execute

    def deferring(connection: Watched, statement: str, *values: Any) -> sqlite3.Cursor:
        if " INTO spent " in statement:
            late.append((statement, *values))
            statement, values = NOTHING, ()
        return execute(connection, statement, *values)

    def spend(connection: Watched) -> None:
        spends = late[:]
        late.clear()
        if spends:
            connection.execute("BEGIN IMMEDIATE")
            for spent in spends:
                connection.run(*spent)
            reseal(connection)
            connection.run("COMMIT")

    monkeypatch.setattr(Watched, "execute", deferring)
    Watched.commit_done = spend


def commit_each_statement(_monkeypatch: Patch) -> None:
    """The ledger commits each statement on its own."""
    Watched.rewrite = without("BEGIN IMMEDIATE")


def look_before_locking(monkeypatch: Patch) -> None:
    """Whether a question was answered is looked up before the lock is taken."""
    look, answer = budget_module.refuse_second_answers, Device.answer

    def early(device: Device, study: Study, *answers: Any) -> str:
        with device.ledger.reading() as connection:
            look(connection, Terms(study))
        with monkeypatch.context() as patch:
            patch.setattr(budget_module, "refuse_second_answers", lambda *_: None)
            return answer(device, study, *answers)

    monkeypatch.setattr(Device, "answer", early)
