"""Work whose process is killed, as a machine without memory kills it.

It stands by itself: a process that is started for it imports no more than the work needs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def frame_after_killing(mark: Path, frame: Any) -> Any:
    """A partition as it is, by Dask."""
    killed_once(mark)
    return frame


def batches_after_killing(mark: Path, batches: Iterator[Any]) -> Iterator[Any]:
    """A partition's batches as they are, by Spark."""
    for batch in batches:
        killed_once(mark)
        yield batch
