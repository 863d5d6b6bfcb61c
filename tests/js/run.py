"""Runs the tests of js/ by node: one process for each file."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from schemas import Study
from tests.portable import npm

FOLDER = Path(__file__).parent
FILES = sorted(path.name.removesuffix(".test.mjs") for path in FOLDER.glob("*.test.mjs"))


def passes(name: str) -> None:
    command = [npm.newer_node(), "--disable-warning=ExperimentalWarning", f"{name}.test.mjs"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or "pass 0" in done.stdout:
        pytest.fail(f"{name}\n{(done.stdout + done.stderr)[-6000:]}", pytrace=False)


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
