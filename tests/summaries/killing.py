"""Work whose process is killed, as a machine without memory kills it.

It stands by itself: a process that is started for it imports no more than the work needs.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from schemas import Study
from summaries.engines.parts import Part


def kill() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(mark: Path) -> None:
    """Kill the process that comes here first."""
    if not mark.exists():
        mark.touch()
        kill()


def ending_once(mark: Path, document: str) -> Part:
    """What is found in no reports, by a process that is killed at its first try."""
    killed_once(mark)
    return Part.empty(Study.from_json(document))


def ending_always() -> Part:
    """Find nothing, ever."""
    kill()
    raise AssertionError("a killed process goes on")
