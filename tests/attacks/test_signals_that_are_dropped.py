"""Ends commands while Python collects garbage, whose callbacks drop what a signal raises."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests import studies

# The first collection raises the signal inside a callback; nothing else wakes the command in time.
WORK = """
import gc, signal, sys, time
from ldp_client import cli

def callback(phase, information):
    gc.callbacks.remove(callback)
    signal.raise_signal(signal.{signal})

def work(parsed):
    gc.callbacks.append(callback)
    gc.collect()
    time.sleep(300)

cli._run = work
sys.exit(cli.main(["budget"]))
"""


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_that_meets_a_callback_ends_the_command(signal, code):
    command = [sys.executable, "-c", WORK.format(signal=signal)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr


HANGS_UP = """
import os, signal, sys, time
from pathlib import Path
from ldp_client import cli
from ldp_client.files import batch

perturb_people = batch.perturb_people

def hung_up(*given, **named):
    signal.raise_signal(signal.SIGHUP)
    time.sleep(300 if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else 0)
    return perturb_people(*given, **named)

batch.perturb_people = hung_up
sys.exit(cli.main(["perturb", "study.json", "answers.csv", "--out", "reports"]))
"""


@pytest.mark.parametrize(("prefix", "code"), [([], 129), (["nohup"], 0)])
def test_a_terminal_that_is_closed_leaves_no_half_drawn_reports(tmp_path, prefix, code):
    """Reports of a first draw beside those of a second one would tell more; nohup goes on as it should."""
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO)))
    (tmp_path / "answers.csv").write_text("ever\nyes\n")
    # The tests themselves may run under nohup.
    command = ["env", "--default-signal=HUP", *prefix, sys.executable, "-c", HANGS_UP]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == code, ended.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"study.json", "answers.csv", "nohup.out"}
    assert left == ({"reports"} if prefix else set())


def test_a_command_that_ends_before_its_signal_is_raised_again_has_ended_well():
    """The alarm that would raise it comes to a process without a handler, and would kill that."""
    ends = WORK.format(signal="SIGINT").replace("time.sleep(300)", "return 0")
    # Later than a busy machine needs to end the command.
    later = ends.replace(
        "cli._run", "from ldp_client.commands import signals\nsignals.AGAIN_SECONDS = 6\ncli._run"
    )
    waits = later.replace("sys.exit(cli.main", "code = cli.main").replace('["budget"]))', '["budget"])')
    command = [sys.executable, "-c", waits + "\ntime.sleep(7)\nsys.exit(code)"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
