"""The demo as a person runs it: small, and interrupted."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from inference.demo.survey import answers_of

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
