"""A device answers once: after crashes, power loss, a second process and a lost lock too.

A crash is an exception ahead of one SQL statement, at every statement in turn. A second process is a second
device on the same folder, which lives whole in that moment. Real kills and real processes are slow tests.
"""

import multiprocessing
import shutil
from contextlib import suppress
from fractions import Fraction
from itertools import count

import pytest

from ldp_client import Device
from ldp_client.device import ledger as ledger_module
from ldp_client.documents.errors import LdpkitError
from schemas import Report, Study
from tests import studies
from tests.kit.connections import Watched, close_all
from tests.kit.errors import raises
from tests.ldp_client import killing
from tests.ldp_client.devices import race
from tests.promises.lives import BUDGET, ROUNDS, bodies_of, live

pytestmark = pytest.mark.usefixtures("memoized", "watched", "hurried")
COST = Fraction(2)
RACERS = 4
CHANGES = ("INSERT", "UPDATE", "DELETE", "COMMIT")
# Where a device takes the ledger's lock, and where it lets it go.
TAKEN = ("BEGIN IMMEDIATE", "COMMIT")


class Crash(BaseException):
    """The process ends here."""


def unflushed(_connection, statement):
    """The statement, with which SQLite waits for no disk."""
    return "PRAGMA synchronous = OFF" if statement.startswith("PRAGMA synchronous =") else statement


@pytest.fixture
def hurried(monkeypatch):
    """A device waits for no lock, nor for the disk: these tests lose no power."""
    monkeypatch.setattr(ledger_module, "LOCK_SECONDS", 0)
    Watched.rewrite = unflushed


def check_life(folder, server):
    """The device can live again, with other answers, and what is once comes once."""
    live(folder, server.url, hours=11)
    reports = [Report.from_json(body) for body in set(bodies_of(server))]
    assert sorted(report.version for report in reports) == [1, 2]
    assert len({report.payloads["ever"][:9] for report in reports}) == 1
    assert Device(folder, BUDGET, server.url).epsilon_left == Fraction(BUDGET) - COST


def check_every_statement(folder, server, act, which):
    """Act ahead of each statement that begins so, in a life of its own; how many there were."""
    Device(folder / "0", BUDGET, server.url).consent(ROUNDS[0])
    for point in count(1):
        server.requests.clear()
        device, seen = folder / str(point), 0
        shutil.copytree(folder / "0", device)

        def before(_connection, statement, point=point, device=device):
            nonlocal seen
            # A commit follows the seal at once.
            if statement.startswith(which) and not statement.startswith("UPDATE seal"):
                seen += 1
                if seen == point:
                    act(device, server.url)

        Watched.before = before
        with suppress(Crash, LdpkitError):
            live(device, server.url, rounds=1)
        close_all()
        if seen < point:
            break
        Watched.before = lambda _connection, _statement: None
        check_life(device, server)
        close_all()
    return point - 1


def crash(_folder, _url):
    raise Crash


def crash_and_lose_the_lock(folder, _url):
    (folder / "lock.sqlite3").unlink(missing_ok=True)
    raise Crash


def live_at_once(folder, url):
    with suppress(LdpkitError):
        live(folder, url, hours=5, rounds=1)


# What happens ahead of which statements, and how many points of them there are at least.
MOMENTS = [
    (crash, CHANGES, 12),
    (crash_and_lose_the_lock, ("COMMIT",), 2),
    (live_at_once, TAKEN, 4),
]


@pytest.mark.parametrize(("act", "which", "points"), MOMENTS)
def test_one_answer_holds(tmp_path, server, act, which, points):
    assert check_every_statement(tmp_path, server, act, which) > points


def test_a_planted_ledger_that_commits_each_statement_is_found(tmp_path, server):
    def without_transactions(connection, statement):
        is_idle_end = statement == "COMMIT" and not connection.in_transaction
        return (
            "SELECT 1" if statement == "BEGIN IMMEDIATE" or is_idle_end else unflushed(connection, statement)
        )

    Watched.rewrite = without_transactions
    with pytest.raises((AssertionError, LdpkitError)):
        check_every_statement(tmp_path, server, crash, CHANGES)


def test_one_collector_gets_no_second_answer_at_another_address(tmp_path):
    """The second version has one blank more in the question's text."""
    for version, path, text in ((1, "a", "Did you ever?"), (2, "b", "Did you  ever?")):
        study = Study(studies.document({**studies.NUMBER, "text": text}, version=version))
        device = Device(tmp_path, BUDGET, f"http://127.0.0.1/{path}", require_consent=False)
        if version == 1:
            device.answer(study, {"hours": 3})
    with raises(LdpkitError, "device.answered"):
        device.answer(study, {"hours": 3})


@pytest.mark.slow
def test_one_answer_after_real_kills_holds():
    done = killing.start(loses_power=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_only_one_real_process_answers(tmp_path):
    outcomes = race(multiprocessing.get_context("spawn"), str(tmp_path), RACERS)
    assert outcomes == ["answered"] + ["refused"] * (RACERS - 1)
