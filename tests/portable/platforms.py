"""Everything that runs the test vectors: vector folder in, {file: differences} out."""

from __future__ import annotations

import json
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


def run_micropython(folder: Path, text: str) -> str:
    """What a Python text prints on MicroPython's WebAssembly build; /data has the folder's files."""
    npm.install()
    return npm.node("micropython.mjs", REPOSITORY, npm.MICROPYTHON, folder, text)


def micropython(vectors: Path) -> Differences:
    """MicroPython, whose json module is lenient."""
    return json.loads(run_micropython(vectors, MICROPYTHON_TEXT))


def javascript(vectors: Path) -> Differences:
    """The browser's port, in node."""
    return json.loads(npm.node("run_vectors.mjs", JAVASCRIPT / "index.js", vectors))
