"""Runs the tests of js/ by node: one process for each file, whose tests are told apart."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schemas import Study
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


def passes(name: str) -> None:
    """Fail unless all tests of the file passed."""
    said = output(name)
    found = {title: not failed for failed, title in RESULT.findall(said)}
    wrong = [title for title, is_right in found.items() if not is_right]
    if wrong or not found or not re.search(r"^# fail 0$", said, re.M):
        pytest.fail(f"{name}: {wrong}\n{said[-6000:]}", pytrace=False)


def device(
    ledger: Path, collector: str, study: Study, *steps: Any, relay: Any = None, **environment: str
) -> list[Any]:
    """What each step of channel.mjs gave, by a device on the ledger in that file."""
    arguments = [str(ledger), collector, study.to_json(), json.dumps(steps)]
    command = [npm.newer_node(), "channel.mjs", *arguments, *([json.dumps(relay)] if relay else [])]
    done = subprocess.run(
        command, cwd=FOLDER, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    gave: list[Any] = json.loads(done.stdout)
    return gave
