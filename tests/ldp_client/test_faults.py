"""Whatever happens: one report for a question, never a spend without a report, nor the other way round."""

import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pytest

from ldp_client.device import device as device_module
from ldp_client.documents.errors import AlreadyAnsweredError, LedgerError, RefusedError
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import consenting
from tests.ldp_client.faults import killing

STUDY = Study(studies.document(studies.NUMBER, studies.YES_NO))
ANSWERS = {"hours": 3, "ever": False}
SEED = 20260615
GOLDEN = Path(__file__).parent.parent / "golden" / "studies"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("random", 20), ("statement", 12), ("request", 0)])
def test_killed_device_has_spend_and_report_or_neither(kind, count):
    """The full number of kills is in benchmarks/client_faults.py."""
    done = killing.start(kind, count)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 problems" in done.stdout
    assert ": 0 lives" not in done.stdout


@pytest.mark.slow
def test_kills_show_a_ledger_without_transactions():
    done = killing.start("statement", 6, broken=True)
    assert done.returncode == 1
    assert "problems\n" in done.stdout


def is_whole(folder):
    """Whether the study is answered; nothing or everything of it must be there."""
    ledger = consenting(folder, "4").ledger
    spent, queued = ledger.spent(), ledger.queued()
    assert (len(spent), len(queued)) in ((0, 0), (2, 1))
    return bool(spent)


ANSWERING_WITH_LITTLE_ROOM = """
import resource, sys
from schemas import Study
from ldp_client.documents.errors import LedgerError
from tests import studies
from tests.ldp_client.devices import consenting
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
study = Study(studies.document(studies.NUMBER, studies.YES_NO))
try:
    consenting(sys.argv[1], "4").answer(study, {"hours": 3, "ever": False})
except LedgerError as error:
    sys.exit(str(error))
"""


@pytest.mark.slow
def test_device_on_a_full_disk_answers_completely_or_not_at_all(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    answered = []
    for room in (0, 100, 600, 4096, 9000, 1 << 16):
        folder = tmp_path / str(room)
        command = [sys.executable, "-c", ANSWERING_WITH_LITTLE_ROOM, str(folder), str(room)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or "cannot" in done.stderr
        answered.append(is_whole(folder))
        assert answered[-1] == (done.returncode == 0)
        if not answered[-1]:
            consenting(folder, "4").answer(STUDY, ANSWERS)
    assert answered == sorted(answered)
    assert set(answered) == {False, True}


def answer_many(device, count):
    for number in range(count):
        study = Study(studies.document(studies.LINEAR, id=f"s{number}"))
        device.answer(study, {"rating": studies.ANSWERS["rating"]})


def test_full_ledger_rejects_answers_and_keeps_its_rows(tmp_path, monkeypatch):
    class Full(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement.startswith("BEGIN"):
                super().execute("PRAGMA max_page_count = 1")
            return super().execute(statement, *values)

    device = consenting(tmp_path, "60")
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Full))
    with raises(LedgerError, "device.ledger_unusable", "full"):
        answer_many(device, 50)
    monkeypatch.undo()
    assert 0 < len(device.ledger.spent()) == len(device.ledger.queued()) < 50
    device.answer(STUDY, ANSWERS)


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answered") / "device"
    consenting(folder, "4").answer(STUDY, ANSWERS)
    return folder


def flipped(content, chance):
    """Change one to four bytes that are not zero."""
    changed = bytearray(content)
    used = [place for place, byte in enumerate(content) if byte]
    for place in chance.sample(used, chance.randint(1, 4)):
        changed[place] ^= chance.randint(1, 255)
    return bytes(changed)


def truncated(content, chance):
    return content[: chance.randrange(len(content))]


def overwritten(content, chance):
    place, length = chance.randrange(len(content)), chance.randint(1, 4096)
    return content[:place] + chance.randbytes(length) + content[place + length :]


@pytest.mark.parametrize("damage", [flipped, truncated, overwritten])
def test_a_damaged_ledger_never_answers_again(answered, tmp_path, damage):
    chance, refusals = random.Random(SEED), set()
    for number in range(50):
        folder = tmp_path / str(number)
        shutil.copytree(answered, folder)
        file = folder / "ledger.sqlite3"
        file.write_bytes(damage(file.read_bytes(), chance))
        with pytest.raises((LedgerError, AlreadyAnsweredError)) as caught:
            consenting(folder, "4").answer(STUDY, ANSWERS)
        refusals.add(caught.type)
    assert LedgerError in refusals


def test_missing_ledger_of_a_killed_device_is_detected(answered, tmp_path):
    """The device was killed after naming the ledger and before noting that it exists."""
    folder = tmp_path / "device"
    shutil.copytree(answered, folder)
    (folder / "lock.sqlite3").unlink()
    consenting(folder, "4", "http://127.0.0.1:9").flush(attempts=1)
    (folder / "ledger.sqlite3").unlink()
    with raises(LedgerError, "device.ledger_gone"):
        consenting(folder, "4").answer(STUDY, ANSWERS)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("spent", "study"),
        ("reports", "collector"),
        ("reports", "body"),
        ("permanent", "question"),
        ("answered", "digest"),
        ("consents", "day"),
        ("seal", "digest"),
    ],
)
def test_text_turned_to_bytes_counts_as_damage(tmp_path, table, column):
    """One bit of a row's header does that."""
    study = Study(studies.document(studies.MEMOIZED))
    device = consenting(tmp_path, "4", "http://127.0.0.1:9")
    device.consent(study)
    device.answer(study, {"habit": "yes"})
    connection = sqlite3.connect(tmp_path / "ledger.sqlite3")
    with connection:
        assert connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS BLOB)").rowcount == 1
    connection.close()
    of_report = (table, column) == ("reports", "body")
    with raises(LedgerError, "device.report_changed" if of_report else "device.ledger_changed"):
        device.flush(attempts=1)


def test_an_error_of_the_ledger_does_not_repeat_an_answer(tmp_path):
    """An error of the caller's table may name the value that it cannot read."""

    class Table:
        def chunks(self):
            return [{"t": [float("secret")]}]

    study = Study(json.loads((GOLDEN / "data-holders.json").read_text()))
    with pytest.raises(LedgerError) as caught:
        consenting(tmp_path, "60").answer(study, {question.id: Table() for question in study.questions})
    assert "ValueError" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("lost", "code"),
    [
        ("emptied", "device.ledger_layout"),
        ("removed", "device.ledger_gone"),
        ("row", "device.ledger_changed"),
        ("older row", "device.ledger_changed"),
    ],
)
def test_ledger_with_lost_rows_rejects_answers(answered, tmp_path, lost, code):
    folder = tmp_path / "device"
    shutil.copytree(answered, folder)
    file = folder / "ledger.sqlite3"
    if lost == "emptied":
        file.write_bytes(b"")
    elif lost == "removed":
        file.unlink()
    else:
        change = "DELETE FROM spent" if lost == "row" else "UPDATE spent SET epsilon = '0.5'"
        connection = sqlite3.connect(file)
        with connection:
            connection.execute(f"{change} WHERE question = 'ever'")
        connection.close()
    with raises(LedgerError, code):
        consenting(folder, "4").answer(STUDY, ANSWERS)


def test_moved_clock_does_not_change_answers(tmp_path, monkeypatch):
    today = date.today()
    study = Study(studies.document(studies.YES_NO, opens=today.isoformat(), closes=today.isoformat()))
    bodies = set()
    for days in (0, -4000, 4000, -1, 1, 0, -30_000, 0):
        moved = today + timedelta(days=days)
        monkeypatch.setattr(device_module, "date", type("Day", (date,), {"today": lambda moved=moved: moved}))
        monkeypatch.setattr("time.time", lambda days=days: 1.8e9 + 86_400 * days)
        device = consenting(tmp_path, "4", send_window=3600)
        if days == 0 and not bodies:
            device.answer(study, {"ever": True})
        else:
            with pytest.raises(RefusedError):
                device.answer(study, {"ever": days % 2 == 0})
        bodies |= {queued.body for queued in device.ledger.queued()}
        assert (len(device.ledger.spent()), len(bodies)) == (1, 1)
    assert Report.from_json(bodies.pop()).study == "survey"
