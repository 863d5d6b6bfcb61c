"""Chromium and Firefox, sent through pages by tests/portable/visit.mjs."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.kit.programs import need, which

SCRIPT = Path(__file__).parents[1] / "portable/visit.mjs"
PROGRAMS = {"chrome": "chromium", "firefox": "firefox"}
NAMES = {"chrome": ("chromium", "google-chrome"), "firefox": ("firefox-esr", "firefox")}
SECONDS = 180


def visit(browser: str, visits: list[dict[str, Any]], scheme: str, width: int) -> dict[str, Any]:
    """What each look found, by its name, and the errors that the browser told."""
    need("npm", PROGRAMS[browser])
    programs = [found for name in NAMES[browser] if (found := which(name))]
    asked = {"browser": browser, "executable": programs[0], "scheme": scheme, "width": width}
    words = json.dumps({**asked, "visits": visits})
    command = ["node", str(SCRIPT)]
    done = subprocess.run(command, input=words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
