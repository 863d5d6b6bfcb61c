"""Threads and processes share a device's folder: locks drop, ledgers are made twice or read half-written.

Defence: The device: refuses in a process that was forked while another thread was inside a ledger; the
lock's file is never opened except by SQLite, nor taken if it is read-only, a ledger that is there is never
replaced, a state is read whole, and what another process keeps it from deleting is said, with exit code 5.
Known limit: a disk that knows no locks.
"""

import os
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from ldp_client.device import layout, ledger
from ldp_client.device.ledger import BusyError, locked
from ldp_client.documents.errors import LedgerError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting

STUDY = Study(studies.document(studies.YES_NO))
ANOTHER_PROCESS = """
import sys
from ldp_client.device.ledger import BusyError, locked
try:
    with locked(sys.argv[1], 0):
        print("taken")
except BusyError:
    print("busy")
"""


def taken_by_another_process(folder):
    command = [sys.executable, "-c", ANOTHER_PROCESS, str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_second_thread_does_not_drop_lock(tmp_path):
    def refused():
        with suppress(BusyError), locked(str(tmp_path), 0):
            pass

    with locked(str(tmp_path), 0):
        thread = threading.Thread(target=refused)
        thread.start()
        thread.join()
        assert taken_by_another_process(tmp_path) == "busy"
    assert taken_by_another_process(tmp_path) == "taken"


def test_creating_lock_file_does_not_drop_lock_of_thread(tmp_path, monkeypatch):
    held, done = threading.Event(), threading.Event()

    def hold():
        with locked(str(tmp_path), 5):
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    close = os.close

    def slow(handle):
        monkeypatch.setattr(layout.os, "close", close)
        thread.start()
        held.wait(0.3)
        close(handle)

    monkeypatch.setattr(layout.os, "close", slow)
    layout.make_private_file(str(tmp_path / layout.LOCK_NAME))
    assert held.wait(5)
    try:
        assert taken_by_another_process(tmp_path) == "busy"
    finally:
        done.set()
        thread.join()


def test_ledger_created_by_other_process_is_not_replaced(tmp_path, monkeypatch):
    """As on a disk without locks."""
    path, create_tables = tmp_path / "ledger.sqlite3", ledger.create_tables

    def also_made(connection):
        create_tables(connection)
        path.write_bytes(b"of another process")

    monkeypatch.setattr(ledger, "create_tables", also_made)
    with raises(LedgerError, "device.ledger_twice"):
        consenting(tmp_path, "4")
    assert path.read_bytes() == b"of another process"


def test_unmarkable_lock_raises_ledger_error(tmp_path):
    def mark_without_transaction():
        with locked(str(tmp_path), 0) as lock:
            lock.execute("COMMIT")
            ledger.mark(lock)

    with raises(LedgerError, "device.lock_unusable"):
        mark_without_transaction()


def test_read_only_lock_is_not_taken(tmp_path, monkeypatch):
    """On a read-only file, SQLite gives the exclusive lock to every process that asks."""
    device = consenting(tmp_path, "4", "https://collector.example")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    with raises(LedgerError, "device.lock_taken", "Permission denied"):
        device.flush(attempts=1)


def test_concurrent_write_while_opening_ledger_is_not_called_damage(tmp_path, monkeypatch):
    writer = consenting(tmp_path, "4")
    monkeypatch.setattr(ledger, "LOCK_SECONDS", 0)
    seal_of, tried = ledger._seal_of, []

    def meddling(*arguments):
        if not tried:
            tried.append(True)
            with suppress(LedgerError):
                writer.answer(STUDY, {"ever": True})
        return seal_of(*arguments)

    monkeypatch.setattr(ledger, "_seal_of", meddling)
    consenting(tmp_path, "4")
    assert tried


def test_withdrawal_during_other_process_flush_is_reported_as_waiting(tmp_path, capsys):
    with Server(STUDY.canonical()) as server:
        device = consenting(tmp_path, "4", server.url)
        device.answer(STUDY, {"ever": True})
        assert device.flush().sent == 1
        command = ["withdraw", f"{server.url}/v1/studies/{STUDY.id}", "--folder", str(tmp_path)]
        with locked(str(tmp_path), 0):
            assert main(command) == 5
            flushed = device.flush()
        assert "1 report waiting: another process of this device is sending" in capsys.readouterr().err
        assert (flushed.waiting, flushed.undeleted, server.asked("DELETE")) == (0, 1, [])
        assert main(command) == 0
        assert len(server.asked("DELETE")) == 1


FORKED = """
import os, sys, threading
from ldp_client import Device
from ldp_client.device.ledger import locked
from ldp_client.documents.errors import LedgerError

device = Device(sys.argv[1], "4")
inside, done = threading.Event(), threading.Event()

def use():
    with device.ledger.reading() if sys.argv[2] == "reading" else locked(sys.argv[1], 0):
        inside.set()
        done.wait(20)

thread = threading.Thread(target=use)
thread.start()
inside.wait()
child = os.fork()
if not child:
    try:
        device.withdraw("survey")
    except LedgerError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
done.set()
thread.join()
if not os.fork():
    print(device.withdraw("survey"), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that fork")
@pytest.mark.parametrize("use", ["reading", "locking"])
def test_process_forked_during_transaction_refuses_ledger(tmp_path, use):
    """The process would believe in locks that no thread holds, or wait forever for a lost one."""
    consenting(tmp_path, "4").answer(STUDY, {"ever": True})
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path), use]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    refused, later = done.stdout.splitlines()
    assert "was forked while another thread used a device" in refused
    assert later == "0"
