"""The ledger: whatever happens to it, a device answers once, or refuses."""

import os
import random
import shutil
import sqlite3
import stat
from contextlib import closing, suppress
from functools import partial

import pytest

from ldp_client.device import layout, ledger
from ldp_client.device.layout import LAYOUT, LEDGER_NAME, LOCK_NAME, holds_device
from ldp_client.device.ledger import Ledger, locked
from ldp_client.documents.errors import AlreadyAnsweredError, LedgerError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import PAIR, PAIR_ANSWERS, STUDY, YES, cheap_study, consenting
from tests.ldp_client.issuers import study_of

SEED = 20260615


@pytest.fixture
def answered(tmp_path):
    folder = tmp_path / "device"
    consenting(folder, "4").answer(PAIR, PAIR_ANSWERS)
    return folder


def refuses(folder, code):
    with raises(LedgerError, code):
        consenting(folder, "8").answer(PAIR, PAIR_ANSWERS)


def test_full_ledger_rejects_answers_and_keeps_its_rows(tmp_path, monkeypatch):
    class Full(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement.startswith("BEGIN"):
                super().execute("PRAGMA max_page_count = 1")
            return super().execute(statement, *values)

    device = consenting(tmp_path, "60")
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Full))
    with raises(LedgerError, "device.ledger_unusable", "full"):
        for number in range(50):
            device.answer(cheap_study(f"s{number}"), YES)
    monkeypatch.undo()
    assert 0 < len(device.ledger.spent()) == len(device.ledger.queued()) < 50
    device.answer(PAIR, PAIR_ANSWERS)


def flipped(content, chance):
    """Change one to four bytes that are not zero."""
    changed = bytearray(content)
    used = [place for place, byte in enumerate(content) if byte]
    for place in chance.sample(used, chance.randint(1, 4)):
        changed[place] ^= chance.randint(1, 255)
    return bytes(changed)


def overwritten(content, chance):
    place, length = chance.randrange(len(content)), chance.randint(1, 4096)
    return content[:place] + chance.randbytes(length) + content[place + length :]


@pytest.mark.parametrize("damage", [flipped, overwritten])
def test_a_damaged_ledger_never_answers_again(answered, tmp_path, damage):
    chance, refusals = random.Random(SEED), set()
    for number in range(15):
        folder = tmp_path / str(number)
        shutil.copytree(answered, folder)
        file = folder / LEDGER_NAME
        file.write_bytes(damage(file.read_bytes(), chance))
        with pytest.raises((LedgerError, AlreadyAnsweredError)) as caught:
            consenting(folder, "4").answer(PAIR, PAIR_ANSWERS)
        refusals.add(caught.type)
    assert LedgerError in refusals


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM spent",
        "UPDATE spent SET epsilon = '0.5'",
        "UPDATE budget SET epsilon = '9'",
        "DELETE FROM budget",
        "UPDATE reports SET ticket = 'OTHER'",
        "DELETE FROM tokens",
        "UPDATE tokens SET token = 'ab'",
        "UPDATE reports SET channel = ''",
        "DELETE FROM answered",
        "UPDATE consents SET day = CAST(day AS BLOB)",
        "UPDATE permanent SET question = CAST(question AS BLOB)",
        "UPDATE seal SET digest = CAST(digest AS BLOB)",
    ],
)
@pytest.mark.attack(4)
def test_a_changed_row_of_any_table_is_detected(tmp_path, change):
    """Someone edits a ledger so that the device answers or spends again; one flipped bit may do it too."""
    device = consenting(tmp_path, "8", "http://127.0.0.1:9")
    study = study_of("http://127.0.0.1:99", studies.MEMOIZED)
    device.consent(study)
    device.answer(study, {"habit": "yes"}, "CODE")
    device.flush(attempts=1)
    with closing(sqlite3.connect(device.ledger.path)) as connection, connection:
        assert connection.execute(change).rowcount == 1
    refuses(tmp_path, "device.ledger_changed")


@pytest.mark.parametrize("found", [0, LAYOUT - 1, LAYOUT + 1])
def test_another_layout_is_refused_and_left_alone(answered, found):
    file = answered / LEDGER_NAME
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {found}")
    before = file.read_bytes()
    refuses(answered, ("device.ledger_layout", f"layout {found}"))
    assert file.read_bytes() == before


@pytest.mark.attack(4)
@pytest.mark.parametrize("lost", ["emptied", "removed", "removed under a device", "journal"])
def test_a_lost_ledger_is_detected(answered, tmp_path, lost):
    """A person deletes a device's ledger, to answer again."""
    file = answered / LEDGER_NAME
    if lost == "emptied":
        file.write_bytes(b"")
    elif lost == "removed under a device":
        device = consenting(answered, "4")
        file.unlink()
        for _ in range(2):
            with raises(LedgerError, "device.ledger_gone"):
                device.answer(PAIR, PAIR_ANSWERS)
        assert not file.exists()
    elif lost == "journal":
        answered = tmp_path / "killed"
        answered.mkdir()
        (answered / f"{LEDGER_NAME}-journal").write_bytes(b"left")
    else:
        file.unlink()
    refuses(answered, "device.ledger_layout" if lost == "emptied" else "device.ledger_gone")


@pytest.mark.attack(4)
@pytest.mark.parametrize("name", [LEDGER_NAME, LOCK_NAME])
def test_link_in_place_of_the_ledger_is_refused(tmp_path, name):
    """Someone plants a link, so that the device writes to another file and changes its mode."""
    other, folder = tmp_path / "others", tmp_path / "device"
    other.write_text("others")
    other.chmod(0o644)
    folder.mkdir()
    (folder / name).symlink_to(other)
    with raises(LedgerError, "device.ledger_link", name):
        consenting(folder, "4")
    assert (other.read_text(), other.stat().st_mode & 0o777) == ("others", 0o644)


@pytest.mark.attack(13)
def test_an_error_of_the_ledger_does_not_repeat_an_answer(tmp_path):
    """A table's error, which may name the value that it cannot read, ends up in a log."""

    class Table:
        def chunks(self):
            return [{"t": [float("secret")]}]

    study = Study(studies.document(*studies.TABLES, **studies.HOLDER))
    with raises(LedgerError, "device.ledger_unusable", "ValueError") as caught:
        consenting(tmp_path, "60").answer(study, {question.id: Table() for question in study.questions})
    assert "secret" not in str(caught.value)


def test_no_thread_locks_the_file_while_it_is_created(tmp_path, monkeypatch):
    """To close the file that was created would drop such a lock (POSIX)."""
    close, is_held = os.close, []

    def watched(handle):
        is_held.append(layout._making.locked())
        close(handle)

    monkeypatch.setattr(layout.os, "close", watched)
    with locked(str(tmp_path), 0):
        assert is_held == [True]


def test_ledger_created_by_another_process_is_not_replaced(tmp_path, monkeypatch):
    """As on a disk without locks."""
    path, create_tables = tmp_path / LEDGER_NAME, ledger.create_tables

    def also_made(connection):
        create_tables(connection)
        path.write_bytes(b"of another process")

    monkeypatch.setattr(ledger, "create_tables", also_made)
    with raises(LedgerError, "device.ledger_twice"):
        consenting(tmp_path, "4")
    assert path.read_bytes() == b"of another process"


def test_read_only_lock_is_not_taken(tmp_path, monkeypatch):
    """On a read-only file, SQLite gives the exclusive lock to every process that asks."""
    device = consenting(tmp_path, "4", "https://collector.example")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    with raises(LedgerError, "device.lock_taken", "Permission denied"):
        device.flush(attempts=1)


def test_concurrent_write_while_opening_the_ledger_is_not_called_damage(tmp_path, monkeypatch):
    writer = consenting(tmp_path, "4")
    monkeypatch.setattr(ledger, "LOCK_SECONDS", 0)
    seal_of, tried = ledger._seal_of, []

    def meddling(*arguments):
        if not tried:
            tried.append(True)
            with suppress(LedgerError):
                writer.answer(STUDY, YES)
        return seal_of(*arguments)

    monkeypatch.setattr(ledger, "_seal_of", meddling)
    consenting(tmp_path, "4")
    assert tried


def test_first_of_two_concurrent_budgets_is_stored(tmp_path, monkeypatch):
    kept, looked = Ledger(str(tmp_path / "device")), Ledger.budget

    def late(self):
        """Another call states 1 just after this one saw that there is none."""
        found = looked(self)
        monkeypatch.setattr(Ledger, "budget", looked)
        assert self.keep_budget("1") == 1
        return found

    monkeypatch.setattr(Ledger, "budget", late)
    assert kept.keep_budget("9") == 1
    assert kept.budget() == "1"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.attack(13)
@pytest.mark.parametrize("before", [None, 0o755, 0o1777], ids=["new", "of other files", "shared on purpose"])
def test_ledger_is_private_and_a_folder_keeps_its_mode(tmp_path, before):
    """Another user of the machine reads a ledger; a mistyped folder must not lose its mode."""
    folder, others = tmp_path / "folder", []
    if before is not None:
        folder.mkdir()
        folder.chmod(before)
        others = ["letter.txt"]
        (folder / "letter.txt").write_text("Dear")
    consenting(folder, "4").answer(STUDY, YES)
    assert sorted(os.listdir(folder)) == sorted([LEDGER_NAME, LOCK_NAME, *others])
    for name in (LEDGER_NAME, LOCK_NAME):
        assert mode(folder / name) == 0o600
        (folder / name).chmod(0o644)
    assert mode(folder) == (before or 0o700)
    assert holds_device(folder)
    # A copy is private from its first use on.
    consenting(folder, "4")
    assert [mode(folder / name) for name in (LEDGER_NAME, LOCK_NAME)] == [0o600, 0o600]
