"""Tutorials and demo as a person runs them: each command works in an empty folder and prints what it says."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from inference.demo.survey import answers_of
from tests.kit.collectors import REPOSITORY
from tests.kit.serving import held_port

PAGES = sorted((REPOSITORY / "docs/tutorials").glob("*.md"))
UNTRUSTED = 4
FENCED = re.compile(r"^```(console|\w+ \S+)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.M)
LEFT_OUT = "…"
# Their numbers are what the page is about.
FIXED = re.compile(r"deleted|tickets left|^reports\t|reports in |waiting")
MARK = "--- exit "
# Of the pages; in a run each is a free one.
PORTS = ("8000", "8001")


class Step(NamedTuple):
    """A command, what the page says that it prints, what it printed, and its exit status."""

    command: str
    told: str
    printed: str
    status: int


class Shell:
    """bash in a folder of its own, which has `ldpkit` on its path and nothing of the caller's home."""

    def __init__(self, folder):
        self.folder = folder
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "HOME": str(folder), "PATH": path, "PYTHONPATH": str(REPOSITORY)}
        environment |= {"COLUMNS": "100"}
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command):
        """What one command prints, both streams, and its exit status."""
        self.process.stdin.write(f"{command}\nlast=$?; echo; echo '{MARK}'$last; (exit $last)\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return "".join(lines).strip("\n"), int(line.removeprefix(MARK))
            lines.append(line)
        raise AssertionError(f"the shell ended at: {command}")

    def close(self):
        """End the shell and what it left running."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def play(text, folder):
    """Write the page's files and run its commands, in order; for its ports free ones are taken."""
    steps = []
    with ExitStack() as held:
        here = {port: str(held.enter_context(held_port())) for port in PORTS} | {"~/": f"{folder}/"}
        there = {found: told for told, found in here.items()}
        shell = Shell(folder)
        held.callback(shell.close)
        for information, body in FENCED.findall(text):
            if information == "console":
                for command, told in COMMAND.findall(body):
                    printed, status = shell.run(_put(command, here))
                    steps.append(Step(command, told, _put(printed, there), status))
            else:
                (folder / information.split(" ")[1]).write_text(_put(body, here))
    return steps


def _put(text, places):
    for old, new in places.items():
        text = text.replace(old, new)
    return text


def blind(line):
    """A line without what differs from run to run: numbers, ids and where bars end."""
    # How many blanks there are before a number its digits say; before a word, whether it stands in a column.
    columns = re.sub(r"\s{2,}(?=[a-z])", "\t", line.strip(), flags=re.I)
    return re.sub(r"[0-9a-f]{16,}|[-+]?\d[\d,.:]*(?:e[-+]?\d+)?", "#", re.sub(r" +", " ", columns))


def untold(step):
    """What the page says that a command prints, and it does not: words, and numbers that never vary.

    Or the other way about, of a page that tells all of it; of the audit log no order is told.
    """
    exact = step.command == "echo $?"

    def seen(line):
        return line.strip() if exact or FIXED.search(line) else blind(line)

    told = [line for line in step.told.splitlines() if line.strip() not in ("", LEFT_OUT)]
    printed = [line for line in step.printed.splitlines() if line.strip()]
    is_all = told and LEFT_OUT not in step.told.splitlines()
    there, here = ({seen(line) for line in lines} for lines in (printed, told))
    beyond = [line for line in told if seen(line) not in there]
    return beyond + [line for line in printed if is_all and seen(line) not in here]


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
    steps = played((REPOSITORY / "README.md").read_text(), tmp_path, [of_one_report])
    assert len(steps) == 11
    assert {step.command: lines for step in steps if (lines := untold(step))} == {}
    assert [step.command for step in steps if step.status] == [of_one_report]


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
