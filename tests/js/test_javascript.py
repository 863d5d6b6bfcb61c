"""The JavaScript library by node, and its ledger in a file under races, kills and losses of power."""

import json
import sqlite3
import subprocess

import pytest

from schemas import Study
from tests import studies
from tests.js import run
from tests.js.run import FOLDER, device
from tests.kit.failing_disk import FailingDisk
from tests.portable import npm
from tests.portable.npm import JAVASCRIPT

NUMBERS = json.dumps(studies.document(studies.NUMBER))


@pytest.mark.processes
@pytest.mark.parametrize("name", run.FILES)
def test_modules_keep_their_rules(name):
    run.passes(name)


def answering(folder, count):
    """Start a process that answers on one ledger after the other, and prints what became of it."""
    command = [npm.newer_node(), "ledger_race.mjs", JAVASCRIPT / "index.js", folder, str(count), NUMBERS]
    return subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_processes_race_for_one_report_each(tmp_path):
    racing = [answering(tmp_path, 6) for _ in range(2)]
    said = [process.communicate(timeout=60)[0].splitlines() for process in racing]
    assert [process.returncode for process in racing] == [0, 0]
    for one, other in zip(*(map(json.loads, lines) for lines in said)):
        assert [one[1], other[1]].count("answered") == 1
    assert not list(tmp_path.glob("*-journal"))


@pytest.mark.slow
def test_killed_process_stores_spend_and_report_or_neither(tmp_path):
    """It is killed after one answer, two and three, wherever it is by then."""
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = answering(folder, 10_000)
        said = [json.loads(process.stdout.readline()) for _ in range(1 + number)]
        process.kill()
        said += [json.loads(line) for line in process.stdout.read().splitlines()]
        process.wait()
        for file in folder.glob("*.db"):
            check_whole(file, dict(said).get(int(file.stem)))


def check_whole(file, said):
    """One spend and one report in it or neither; both where they were told."""
    with sqlite3.connect(file) as database:
        (made,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        text = made and database.execute("SELECT memory FROM ldpkit_ledger").fetchone()[0]
    memory = json.loads(text or '{"spent": [], "reports": []}')
    assert len(memory["spent"]) == len(memory["reports"]) <= 1
    assert said is None or [report["body"] for report in memory["reports"]] == [said]


@pytest.mark.slow
@pytest.mark.attack(11)
@pytest.mark.needs("gcc")
def test_withdrawal_survives_a_loss_of_power(tmp_path):
    """The power fails after a withdrawal, and SQLite's journal would restore the report."""
    disk = FailingDisk(tmp_path)
    at = disk.root / "kept.db", "http://127.0.0.1:9", Study(studies.document(studies.NUMBER))
    device(*at, ["answer", {"hours": 3}], ["consent"])
    disk.keep()
    assert device(*at, ["withdraw"], **disk.environment) == [0]
    disk.lose_power()
    assert device(*at, ["report"]) == [None]
