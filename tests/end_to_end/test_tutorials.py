"""Tutorials and demo as a person runs them: each command works in an empty folder and prints what it says."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from inference.demo.survey import answers_of
from tests.kit.tutorials import Step, play, untold

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/tutorials").glob("*.md"))
UNTRUSTED = 4


def played(text, folder, meant=()):
    """Chance draws the noise: a check that one fit in a thousand fails may speak once, and not twice.

    meant: commands that end so on purpose.
    """
    for attempt in ("first", "second"):
        (folder / attempt).mkdir()
        steps = play(text, folder / attempt)
        if all(step.status != UNTRUSTED or step.command in meant for step in steps):
            break
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_tutorial_prints_documented_output(page, tmp_path):
    steps = played(page.read_text(), tmp_path)
    assert len(steps) > 6
    assert {step.command: lines for step in steps if (lines := untold(step))} == {}
    # A command that fails is followed by one that asks with which status.
    asked = [after.command == "echo $?" for after in steps[1:]] + [False]
    assert [step for step, is_asked in zip(steps, asked, strict=True) if step.status and not is_asked] == []


@pytest.mark.slow
def test_readme_prints_documented_output(tmp_path):
    of_one_report = "ldpkit fit ../study.json collected.ndjson --out result"
    steps = played((ROOT / "README.md").read_text(), tmp_path, [of_one_report])
    assert len(steps) == 11
    assert {step.command: lines for step in steps if (lines := untold(step))} == {}
    assert [step.command for step in steps if step.status] == [of_one_report]


STATUS, ADDRESS = "wards\tversion 1\t3 reports\n…\n", "people answer at  http://x\n"


@pytest.mark.parametrize(
    ("command", "told", "printed", "differs"),
    [
        ("ldpkit status", STATUS, "wards\tversion 2\t14 reports", False),
        ("ldpkit status", STATUS, "wards\tversion 2\t14 answers", True),
        ("ldpkit publish", ADDRESS, "people answer at http://x", True),
        ("ldpkit publish", ADDRESS, f"{ADDRESS}more", True),
        ("ldpkit publish", f"{ADDRESS}…\n", f"{ADDRESS}more", False),
        ("echo $?", "3\n", "5", True),
    ],
)
def test_only_words_columns_lines_and_fixed_numbers_are_compared(command, told, printed, differs):
    assert bool(untold(Step(command, told, printed, 0))) == differs


@pytest.mark.slow
def test_a_failed_command_is_noticed(tmp_path):
    (good, bad, asking) = play("```console\n$ echo one\none\n$ ls nowhere\n$ echo $?\n2\n```\n", tmp_path)
    assert (good.status, bad.status, untold(asking)) == (0, 2, [])


DEMO = [sys.executable, "-m", "ldpkit", "demo"]


def group_of(pid):
    done = subprocess.run(["pgrep", "-g", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.split()


def lines_of(terminal):
    """Yield what a process draws on a terminal, until the process ends. Progress goes to terminals alone."""
    # Linux ends a terminal whose other side is closed by an error.
    with os.fdopen(terminal, errors="replace") as file, suppress(OSError):
        yield from file


@pytest.mark.slow
def test_a_small_demo_writes_everything_and_leaves_no_server(tmp_path):
    out = tmp_path / "demo"
    command = [*DEMO, "--n", "60"]
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True
    )
    os.close(stderr)
    progress = "".join(lines_of(terminal))
    shown, _ = process.communicate(timeout=600)
    assert process.returncode in (0, 4), progress
    assert group_of(process.pid) == []
    assert "60 of 60 devices have answered and sent" in progress
    assert "affair-model (logistic_regression, 60 reports)" in shown
    names = {path.name for path in out.iterdir()}
    assert {"study.json", "reports.ndjson", "posterior.json", "report.html"} <= names
    document = json.loads((out / "posterior.json").read_text())
    assert len(document["questions"]) == 6
    trusted = all(question["verdict"]["word"] != "not usable" for question in document["questions"].values())
    assert process.returncode == (0 if trusted else 4)
    assert all(question["n"] == 60 for question in document["questions"].values())
    assert "of the answers were yes" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


@pytest.mark.slow
def test_an_interrupted_demo_leaves_no_server_and_no_results(tmp_path):
    command = [*DEMO, "--n", "6000"]
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(command, cwd=tmp_path, stderr=stderr, start_new_session=True)
    os.close(stderr)
    lines = lines_of(terminal)
    assert "a collector listens on" in next(lines)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(60) == 130
    deadline = time.monotonic() + 10
    while group_of(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
    lines.close()


def test_the_survey_is_the_real_one_and_the_seed_chooses_people():
    answers = answers_of(None, 0)
    assert (len(answers), sum(person["affair"] for person in answers)) == (6366, 2053)
    assert all(person["affair-model"]["affair"] == person["affair"] for person in answers)
    assert answers_of(50, 1) == answers_of(50, 1) != answers_of(50, 2)
