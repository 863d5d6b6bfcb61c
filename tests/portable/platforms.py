"""Everything that runs the test vectors: vector folder in, {file: differences} out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.portable import npm

REPOSITORY = Path(__file__).parents[2]
JAVASCRIPT = REPOSITORY / "js"
MICROPYTHON_TEXT = """
import json
from tests.portable.run_vectors import failures
print(json.dumps(failures("/data", strict_json=False)))
"""
Differences = dict[str, list[str]]


def python(interpreter: str | Path, vectors: Path) -> Differences:
    """Another process, with nothing of the repository imported yet."""
    command = [interpreter, "-m", "tests.portable.run_vectors", vectors]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def run_micropython(folder: Path, text: str, installed: Path | None = None) -> str:
    """What a Python text prints on MicroPython's WebAssembly build; /data has the folder's files.

    installed: a board's folder of modules, to be used in place of the sources.
    """
    npm.install()
    more = [] if installed is None else [installed]
    return npm.node("micropython.mjs", REPOSITORY, npm.MICROPYTHON, folder, text, *more)


def micropython(vectors: Path, installed: Path | None = None) -> Differences:
    """MicroPython, whose json module is lenient."""
    return json.loads(run_micropython(vectors, MICROPYTHON_TEXT, installed))


def javascript(vectors: Path) -> Differences:
    """The browser's port, in node."""
    return json.loads(npm.node("run_vectors.mjs", JAVASCRIPT / "index.js", vectors))


def platforms() -> dict[str, Callable[[Path], Differences]]:
    """Every platform of this machine, by name."""
    return {"python": partial(python, sys.executable), "micropython": micropython, "javascript": javascript}
