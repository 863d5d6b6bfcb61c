"""Runs the tests of js/ by node: one process for each file, whose tests are told apart."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.portable import npm

FOLDER = Path(__file__).parent
FILES = sorted(path.name.removesuffix(".test.mjs") for path in FOLDER.glob("*.test.mjs"))
RESULT = re.compile(r"^(not )?ok \d+ - (.*?)(?: # .*)?$", re.M)


@cache
def output(name: str) -> str:
    """What node says of one file's tests, in the format TAP."""
    command = [npm.newer_node(), "--disable-warning=ExperimentalWarning", "--test-reporter=tap"]
    done = subprocess.run(
        [*command, f"{name}.test.mjs"], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def passes(name: str, title: str = "") -> None:
    """Fail unless this test of the file passed, or all of them."""
    said = output(name)
    found = {one: not failed for failed, one in RESULT.findall(said)}
    wanted = [title] if title else list(found)
    wrong = [one for one in wanted if not found.get(one)]
    if wrong or not wanted or (not title and not re.search(r"^# fail 0$", said, re.M)):
        pytest.fail(f"{name}: {wrong}\n{said[-6000:]}", pytrace=False)
