"""Runs a tutorial as its reader would: its files are written, its commands typed into one shell, in order."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.kit.serving import held_port

FENCED = re.compile(r"^```(console|\w+ \S+)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.M)
LEFT_OUT = "…"
# Their numbers are what the page is about.
FIXED = re.compile(r"deleted|tickets left|^reports\t|reports in |waiting")
MARK = "--- exit "
# Of the pages; in a run each is a free one.
PORTS = ("8000", "8001")
REPOSITORY = Path(__file__).parents[2]


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
        assert self.process.stdin
        assert self.process.stdout
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
    with contextlib.ExitStack() as held:
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
