"""Spend, report and permanent answer are durable together before anything is sent.

Whenever a request arrives, the test copies the device's folder, as if the device were killed then. A device
on that copy must have spent, must send the same bytes, and must repeat the same permanent answer. What
SQLite flushes at each commit decides what a loss of power leaves; slow tests drop what was not flushed.
"""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from ldp_client import Device, Direct
from ldp_client.device import outbox
from ldp_client.device.requests import put_report
from ldp_client.documents.errors import AlreadyAnsweredError
from schemas import Report
from tests.kit.connections import Watched
from tests.ldp_client import killing
from tests.promises.lives import BUDGET, ROUNDS, bodies_of, live

pytestmark = pytest.mark.usefixtures("memoized", "watched")
# What `PRAGMA synchronous` calls FULL and EXTRA. Where a commit is a journal's removal, FULL may lose it.
FULL, EXTRA = 2, 3
KEPT_JOURNALS = ("wal", "persist", "truncate")


def test_each_commit_of_the_ledger_is_flushed(tmp_path, server):
    """tests/mutants plants a ledger that flushes nothing."""
    commits = []

    def before(connection, statement):
        if statement.startswith("COMMIT"):
            file, journal = connection.pragma("database_list"), connection.pragma("journal_mode")
            is_ledger = Path(file).name.startswith("ledger.sqlite3")
            commits.append(is_ledger)
            least = EXTRA if is_ledger and journal not in KEPT_JOURNALS else FULL
            assert connection.pragma("synchronous") >= least, file
            assert journal not in ("off", "memory"), file

    Watched.before = before
    live(tmp_path, server.url)
    assert sum(commits) > 2


def check_arrivals(folder, server):
    """The folder lacks nothing when a report arrives, as a device finds that goes on from a copy of it."""
    copies, respond = [], server.respond

    def copy_and_respond(method, path, body, headers):
        """Copy first: the device learns nothing of the arrival yet."""
        if method == "PUT":
            copies.append((folder / f"copy-{len(copies)}", body))
            shutil.copytree(folder / "device", copies[-1][0])
        return respond(method, path, body, headers)

    server.respond = copy_and_respond
    live(folder / "device", server.url)
    server.respond = respond
    assert len(copies) >= 2
    for copy, body in copies:
        check_copy(copy, body, server)


def check_copy(folder, body, server):
    """A device on a copy of the folder has spent, sends this body and repeats the permanent answer."""
    sent, device = Report.from_json(body), Device(folder, BUDGET, server.url)
    assert device.epsilon_left == Fraction(BUDGET) - 2, "the spend is missing"
    study = ROUNDS[sent.version - 1]
    device.consent(study)
    with pytest.raises(AlreadyAnsweredError):
        device.answer(study, {question.id: False for question in study.questions if question.ask == "yes_no"})
    server.requests = []
    device.flush(attempts=1)
    assert body in bodies_of(server), "the report is missing"
    if sent.version == 1:
        device.consent(ROUNDS[1])
        device.answer(ROUNDS[1], {"ever": False})
        device.flush(attempts=1)
        later = [report for report in map(Report.from_json, bodies_of(server)) if report.version == 2]
        assert [report.payloads["ever"][:9] for report in later] == [sent.payloads["ever"][:9]]


def test_all_is_durable_when_a_report_arrives(tmp_path, server):
    check_arrivals(tmp_path, server)


def test_a_report_that_leaves_before_the_commit_is_found(tmp_path, server, monkeypatch):
    """The report is sent while it is being queued."""
    enqueue = outbox.enqueue

    def hasty(connection, report, most):
        enqueue(connection, report, most)
        url = f"{server.url}/v1/studies/{report.study}/reports/{report.report_id}"
        put_report(Direct(), url, report.body)

    monkeypatch.setattr(outbox, "enqueue", hasty)
    with pytest.raises(AssertionError, match="the spend is missing"):
        check_arrivals(tmp_path, server)


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True], ids=["as it is", "nothing is flushed"])
def test_a_loss_of_power_leaves_all_or_nothing(broken):
    done = killing.start(loses_power=True, broken=broken)
    assert done.returncode == int(broken), done.stdout + done.stderr
