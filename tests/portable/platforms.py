"""The JavaScript that runs the test vectors."""

from __future__ import annotations

import json
from pathlib import Path

from tests.portable import npm

REPOSITORY = Path(__file__).parents[2]
JAVASCRIPT = REPOSITORY / "js"


def javascript(vectors: Path) -> dict[str, list[str]]:
    """Run the browser's port in node on a folder of vectors, and return {file: differences}."""
    return json.loads(npm.node("run_vectors.mjs", JAVASCRIPT / "index.js", vectors))
