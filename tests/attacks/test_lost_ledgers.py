"""A device loses its lock and then its ledger, and answers again; or other users of the machine read them.

Attack: To have a device answer again by losing its lock, then its ledger, or to read them as another
user: the device: each file records that the other existed; files have mode 0600 and the folder 0700, and
it warns if they had not. Known limit: both files lost together, an older copy of both put back.

Attack: To read in a device's ledger, much later, at which second a person answered: the device: deletes
when a report was due once it is concluded, and when requests were made with the next flush a minute later
(in JavaScript: until when nothing may be sent with them, with the next flush after that).
"""

import os
import sqlite3
import stat

import pytest

from ldp_client import Device
from ldp_client.documents.errors import LedgerError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting

STUDY = Study(studies.document(studies.YES_NO))
LEDGER, LOCK = "ledger.sqlite3", "lock.sqlite3"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files")


@pytest.fixture(autouse=True)
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def lose_in_turn(folder, between):
    device = consenting(folder, "4")
    device.answer(STUDY, {"ever": True})
    (folder / LOCK).unlink()
    between(device)
    (folder / LEDGER).unlink()


@pytest.mark.parametrize("between", ["open", "answer", "flush"])
def test_loss_of_lock_and_then_ledger_is_detected(tmp_path, between):
    with Server() as server:
        todo = {
            "open": lambda _: Device(tmp_path, "4"),
            "answer": lambda device: device.answer(
                Study(studies.document(studies.NUMBER, id="b")), {"hours": 1}
            ),
            "flush": lambda _: consenting(tmp_path, "4", server.url).flush(),
        }
        lose_in_turn(tmp_path, todo[between])
    with raises(LedgerError, "device.ledger_gone"):
        consenting(tmp_path, "4").answer(STUDY, {"ever": False})


def test_ledger_deleted_under_a_running_device_is_detected(tmp_path):
    device = consenting(tmp_path, "4")
    device.answer(STUDY, {"ever": True})
    (tmp_path / LEDGER).unlink()
    for refused in (device, device):
        with raises(LedgerError, "device.ledger_gone"):
            refused.answer(STUDY, {"ever": False})
    assert not (tmp_path / LEDGER).exists()
    with raises(LedgerError, "device.ledger_gone"):
        consenting(tmp_path, "4")


def test_leftover_journal_reveals_a_lost_ledger(tmp_path):
    (tmp_path / f"{LEDGER}-journal").write_bytes(b"left")
    with raises(LedgerError, "device.ledger_gone"):
        consenting(tmp_path, "4")


def test_existing_folder_becomes_private_to_its_owner(tmp_path, caplog):
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    device = consenting(folder, "4")
    device.answer(STUDY, {"ever": True})
    assert {name: mode(folder / name) for name in os.listdir(folder)} == {LEDGER: 0o600, LOCK: 0o600}
    assert mode(folder) == 0o700
    assert caplog.messages == [f"{folder}: other users of this machine could read it; now only its owner can"]


def test_readable_older_ledger_becomes_private_with_a_warning(tmp_path, caplog):
    consenting(tmp_path, "4").answer(STUDY, {"ever": True})
    for name in (LEDGER, LOCK):
        (tmp_path / name).chmod(0o644)
    consenting(tmp_path, "4")
    assert [mode(tmp_path / name) for name in (LEDGER, LOCK)] == [0o600, 0o600]
    assert len(caplog.messages) == 2
    consenting(tmp_path, "4")
    assert len(caplog.messages) == 2


def test_shared_sticky_folder_keeps_its_mode(tmp_path, caplog):
    folder = tmp_path / "sticky"
    folder.mkdir()
    folder.chmod(0o1777)
    consenting(folder, "4")
    assert mode(folder) == 0o1777
    assert mode(folder / LEDGER) == 0o600
    assert "and still can" in caplog.text


def test_ledger_does_not_keep_the_time_of_an_answer(tmp_path):
    """The times of a report and its requests are deleted, even if nothing is sent any more."""
    with Server() as server:
        device = consenting(tmp_path, "4", server.url, send_window=3600)
        device.answer(STUDY, {"ever": True})
        device.flush(now=True)
        with sqlite3.connect(tmp_path / LEDGER) as ledger:
            assert ledger.execute("SELECT state, due FROM reports").fetchall() == [("sent", 0)]
            assert ledger.execute("UPDATE attempts SET moment = moment - 61").rowcount
        device.flush()
        with sqlite3.connect(tmp_path / LEDGER) as ledger:
            assert ledger.execute("SELECT * FROM attempts").fetchall() == []
