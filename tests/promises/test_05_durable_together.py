"""Spend, report and permanent answer are durable together before anything is sent.

Whenever a request arrives, the test copies the device's folder, as if the device were killed then. A device
on that copy must have spent, must send the same bytes, and must repeat the same permanent answer. What
SQLite flushes at each commit decides what a loss of power leaves; slow tests drop what was not flushed.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ldp_client import Device, Direct
from ldp_client.device import outbox as outbox_module
from ldp_client.device.requests import put_report
from ldp_client.documents.errors import AlreadyAnsweredError, LdpkitError
from schemas import Report
from tests.ldp_client import killing
from tests.ldp_client.devices import Server
from tests.promises.watched_ledger import BUDGET, ROUNDS, Arrivals, Patch, Watched, bodies_of, live

# What `PRAGMA synchronous` calls FULL and EXTRA. Where a commit is a journal's removal, FULL may lose it.
FULL, EXTRA = 2, 3
KEPT_JOURNALS = ("wal", "persist", "truncate")


pytestmark = pytest.mark.usefixtures("watched", "flushing")


@pytest.fixture
def flushing() -> None:
    """Connections flush as they do elsewhere."""
    Watched.rewrite = lambda _connection, statement: statement


def unsafe_commits(folder: Path, act: Callable[[], Any]) -> list[str]:
    """The commits during an act that a loss of power may take back."""
    wrong: list[str] = []
    commits = []

    def before(connection: sqlite3.Connection, statement: str) -> None:
        if not statement.startswith("COMMIT"):
            return
        assert isinstance(connection, Watched)
        file, flush, journal = (
            connection.run(f"PRAGMA {name}").fetchone()[-1]
            for name in ("database_list", "synchronous", "journal_mode")
        )
        is_ledger = Path(file).name.startswith("ledger.sqlite3")
        commits.append(is_ledger)
        least = EXTRA if is_ledger and journal not in KEPT_JOURNALS else FULL
        if flush < least or journal in ("off", "memory"):
            wrong.append(f"synchronous is {flush}, the journal {journal} for {Path(file).name}")

    Watched.before = before
    act()
    Watched.before = lambda _connection, _statement: None
    assert sum(commits) > 2, f"the ledger in {folder} was hardly written to"
    return wrong


def not_yet_durable(folder: Path, server: Server, rounds: int = 2) -> list[str]:
    """What the folder lacked when a report arrived, found by a device that goes on from a copy of it."""
    device, copies = folder / "device", []

    def look(request: tuple[str, str, bytes, Any]) -> None:
        if request[0] == "PUT":
            copies.append((folder / f"copy-{len(copies)}", request[2]))
            shutil.copytree(device, copies[-1][0])

    server.requests = Arrivals()
    server.requests.look = look
    live(device, server.url, rounds=rounds)
    assert len(copies) >= rounds
    return [problem for copy, body in copies for problem in lacking(copy, body, server)]


def lacking(copy: Path, body: bytes, server: Server) -> list[str]:
    """What is missing of the report with this body in a copy of the folder."""
    sent = Report.from_json(body)
    device = Device(copy, BUDGET, server.url)
    wrong = [] if device.epsilon_left == Fraction(BUDGET) - 2 else ["the spend is missing"]
    study = ROUNDS[sent.version - 1]
    try:
        device.consent(study)
        device.answer(study, {question.id: False for question in study.questions if question.ask == "yes_no"})
        wrong.append("the answer is given again")
    except AlreadyAnsweredError:
        pass
    except LdpkitError as error:
        wrong.append(f"the answer is not known as given: {error}")
    server.requests = Arrivals()
    device.flush(attempts=1)
    wrong += [] if body in bodies_of(server) else ["the report is missing"]
    if sent.version == 1:
        wrong += repeated(device, sent, server)
    return wrong


def repeated(device: Device, sent: Report, server: Server) -> list[str]:
    """What is wrong with the permanent answer that the next round has to repeat."""
    try:
        device.consent(ROUNDS[1])
        device.answer(ROUNDS[1], {"ever": False})
    except LdpkitError as error:
        return [f"the permanent answer is missing: {error}"]
    device.flush(attempts=1)
    later = [report for report in map(Report.from_json, bodies_of(server)) if report.version == 2]
    same = [report for report in later if report.payloads["ever"][:9] == sent.payloads["ever"][:9]]
    return [] if same else ["the permanent answer is another"]


def test_each_commit_of_the_ledger_is_flushed(tmp_path: Path, server: Server) -> None:
    assert not unsafe_commits(tmp_path, lambda: live(tmp_path, server.url))


def test_all_is_durable_when_a_report_arrives(tmp_path: Path, server: Server) -> None:
    assert not not_yet_durable(tmp_path, server)


def test_a_planted_ledger_that_flushes_nothing_is_found(tmp_path: Path, server: Server) -> None:
    Watched.rewrite = lambda _connection, statement: statement.replace(
        "synchronous = EXTRA", "synchronous = OFF"
    )
    assert unsafe_commits(tmp_path, lambda: live(tmp_path, server.url))


def test_a_report_that_leaves_before_the_commit_is_found(
    tmp_path: Path, server: Server, monkeypatch: Patch
) -> None:
    """The report is sent while it is being queued."""
    enqueue = outbox_module.enqueue

    def hasty(connection: sqlite3.Connection, report: Any, most: int) -> None:
        enqueue(connection, report, most)
        url = f"{server.url}/v1/studies/{report.study}/reports/{report.report_id}"
        put_report(Direct(), url, report.body)

    monkeypatch.setattr(outbox_module, "enqueue", hasty)
    wrong = not_yet_durable(tmp_path, server)
    assert {"the spend is missing", "the report is missing"} <= set(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True], ids=["as it is", "nothing is flushed"])
def test_a_loss_of_power_leaves_all_or_nothing(broken: bool) -> None:
    done = killing.start(loses_power=True, broken=broken)
    assert done.returncode == int(broken), done.stdout + done.stderr
