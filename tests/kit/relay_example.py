"""examples/relay.py as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "examples" / "relay.py"
_spec = importlib.util.spec_from_file_location("relay_example", PATH)
assert _spec is not None
assert _spec.loader is not None
relaying = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(relaying)
