"""Ends commands while Python collects garbage, whose callbacks drop what a signal raises."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


def test_a_command_that_ends_before_its_signal_is_raised_again_has_ended_well():
    """The alarm that would raise it comes to a process without a handler, and would kill that."""
    ends = WORK.format(signal="SIGINT").replace("time.sleep(300)", "return 0")
    waits = ends.replace("sys.exit(cli.main", "code = cli.main").replace('["budget"]))', '["budget"])')
    command = [sys.executable, "-c", waits + "\ntime.sleep(0.2)\nsys.exit(code)"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
