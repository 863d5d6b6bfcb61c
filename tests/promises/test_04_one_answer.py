"""A device answers once: after crashes, power loss, a second process and a lost lock too.

A crash is an exception ahead of one SQL statement, at every statement in turn. A second process is a second
device on the same folder, which lives whole in that moment. Real kills and real processes are slow tests.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ldp_client import Device
from ldp_client.device import ledger as ledger_module
from ldp_client.documents.errors import AlreadyAnsweredError, LdpkitError, LedgerError
from schemas import Report, Study
from tests import studies
from tests.ldp_client import killing
from tests.ldp_client.devices import Server, race
from tests.promises.watched_ledger import (
    BUDGET,
    CHANGES,
    ROUNDS,
    Arrivals,
    Crash,
    Patch,
    Watched,
    at_statement,
    bodies_of,
    close_all,
    live,
    without,
)

pytestmark = pytest.mark.usefixtures("watched")
COST = Fraction(2)
RACERS = 4
# Where a device takes the ledger's lock, and where it lets it go.
TAKEN = ("BEGIN IMMEDIATE", "COMMIT")


def problems(folder: Path, server: Server) -> list[str]:
    """What is wrong once the device has lived again, with other answers: none or two of what is once."""
    try:
        live(folder, server.url, hours=11)
        left = Device(folder, BUDGET, server.url).epsilon_left
    except LdpkitError as error:
        return [f"the device cannot go on: {error}"]
    reports = [Report.from_json(body) for body in set(bodies_of(server))]
    first, later = ([report for report in reports if report.version == version] for version in (1, 2))
    states = {report.payloads["ever"][:9] for report in reports}
    wrong = [f"{len(first)} reports of version 1"] if len(first) != 1 else []
    wrong += [f"{len(later)} reports of version 2"] if len(later) != 1 else []
    wrong += [f"{len(states)} permanent answers"] if len(states) > 1 else []
    return wrong + ([f"epsilon {left} is left"] if left != Fraction(BUDGET) - COST else [])


def at_every_statement(
    folder: Path, server: Server, act: Callable[[Path], Any], which: tuple[str, ...] = CHANGES
) -> tuple[int, list[str]]:
    """How many statements change a ledger in a life, and the first problems that come of acting there."""
    Device(folder / "0", BUDGET, server.url).consent(ROUNDS[0])
    for point in count(1):
        server.requests = Arrivals()
        device = folder / str(point)
        shutil.copytree(folder / "0", device)
        here = at_statement(point, partial(act, device), which)
        with here as seen, suppress(Crash, LdpkitError):
            live(device, server.url, rounds=1)
        close_all()
        if seen[0] < point:
            return point - 1, []
        wrong = problems(device, server)
        close_all()
        if wrong:
            return point, wrong
    raise AssertionError


def crash(_folder: Path) -> None:
    """The process ends."""
    raise Crash


def crash_and_lose_the_lock(folder: Path) -> None:
    """The process ends, and the lock's file is gone."""
    (folder / "lock.sqlite3").unlink(missing_ok=True)
    raise Crash


def second_device(server: Server) -> Callable[[Path], None]:
    """Another process answers and sends in that moment; it may find the ledger busy."""

    def act(folder: Path) -> None:
        with suppress(LdpkitError):
            live(folder, server.url, hours=5, rounds=1)

    return act


def test_one_answer_after_a_crash_at_any_statement_holds(tmp_path: Path, server: Server) -> None:
    statements, wrong = at_every_statement(tmp_path, server, crash)
    assert not wrong
    assert statements > 12


def test_one_answer_after_a_crash_that_lost_the_lock_holds(tmp_path: Path, server: Server) -> None:
    """The crash comes before commits only, of which there are fewer."""
    assert not at_every_statement(tmp_path, server, crash_and_lose_the_lock, ("COMMIT",))[1]


def test_one_answer_of_two_devices_at_once_holds(tmp_path: Path, server: Server) -> None:
    assert not at_every_statement(tmp_path, server, second_device(server), TAKEN)[1]


def test_a_planted_ledger_that_commits_each_statement_is_found(tmp_path: Path, server: Server) -> None:
    Watched.rewrite = without("BEGIN IMMEDIATE")
    assert at_every_statement(tmp_path, server, crash)[1]


def answers_without_a_ledger(folder: Path, server: Server) -> bool:
    """Whether a device answers again that lost its lock, was opened, and then lost its ledger."""
    live(folder, server.url, rounds=1)
    (folder / "lock.sqlite3").unlink()
    Device(folder, BUDGET, server.url)
    (folder / "ledger.sqlite3").unlink()
    with suppress(LedgerError):
        live(folder, server.url, rounds=1)
        return True
    return False


def test_a_device_that_lost_lock_and_ledger_in_turn_refuses(tmp_path: Path, server: Server) -> None:
    assert not answers_without_a_ledger(tmp_path, server)


def test_a_lost_lock_that_is_not_made_again_is_found(
    tmp_path: Path, server: Server, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(ledger_module, "is_lost", lambda _folder: False)
    assert answers_without_a_ledger(tmp_path, server)


def second_answer(folder: Path, url: str, **options: Any) -> str:
    """Answer at one base URL, then at another, a study with one blank more in its text; the error's code."""
    for version, at, text in ((1, "http://127.0.0.1/a", "Did you ever?"), (2, url, "Did you  ever?")):
        study = Study(studies.document({**studies.NUMBER, "text": text}, id="paths", version=version))
        device = Device(folder, BUDGET, at, require_consent=False, **(options if version == 2 else {}))
        try:
            device.answer(study, {"hours": 3})
        except AlreadyAnsweredError as error:
            return error.code
    return ""


def test_one_collector_gets_no_second_answer_at_another_address(tmp_path: Path, monkeypatch: Patch) -> None:
    assert second_answer(tmp_path / "path", "http://127.0.0.1/b") == "device.answered"
    old = ["http://127.0.0.1"]
    assert second_answer(tmp_path / "moved", "http://127.0.0.1:81", formerly=old) == "device.answered"
    assert second_answer(tmp_path / "other", "http://127.0.0.1:81") == ""
    monkeypatch.setattr("ldp_client.device.device.origin_of", lambda url: url)
    assert second_answer(tmp_path / "planted", "http://127.0.0.1/b") == ""


@pytest.mark.slow
def test_one_answer_after_real_kills_holds() -> None:
    done = killing.start(loses_power=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_only_one_real_process_answers(tmp_path: Path) -> None:
    outcomes = race(multiprocessing.get_context("spawn"), str(tmp_path), RACERS)
    assert outcomes == ["answered"] + ["refused"] * (RACERS - 1)
