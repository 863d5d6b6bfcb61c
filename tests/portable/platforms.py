"""Where the library in JavaScript is."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
JAVASCRIPT = REPOSITORY / "js"
