"""Signals that end a command, wherever its libraries are when they arrive."""

import signal
import sys
from contextlib import contextmanager

from ldp_client.documents.errors import EXIT_HUNG_UP, EXIT_TERMINATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from sys import UnraisableHookArgs
    from typing import Optional

# What each signal raises. Python drops it where it meets a callback, as of its garbage collection.
RAISED = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
# Until the callback has ended, with next to nothing of a second one.
AGAIN_SECONDS = 0.02


@contextmanager
def ending_by_signal() -> "Iterator[None]":
    """Let SIGINT raise KeyboardInterrupt, SIGTERM and SIGHUP SystemExit: a command cleans up after itself.

    A hang-up that is ignored, as under nohup, stays so. Where SIGINT or SIGTERM is dropped it is raised
    again: no long work goes on that somebody has ended.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    # Windows has none.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: sys.exit(EXIT_HUNG_UP))
    if not hasattr(signal, "setitimer"):
        # Windows, where nothing wakes the main thread later.
        yield
        return
    told, busy = sys.unraisablehook, False
    lost: "Optional[int]" = None

    def dropped(unraisable: "UnraisableHookArgs") -> None:
        nonlocal lost, busy
        number = RAISED.get(unraisable.exc_type)
        if number is None:
            told(unraisable)
            return
        busy, lost = True, number
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        busy = False

    def again(*_: object) -> None:
        # What is raised inside of the hook is dropped too, and nobody is told.
        if busy or lost is None:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        else:
            signal.raise_signal(lost)

    was = signal.signal(signal.SIGALRM, again)
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = told
        if lost is not None:
            # Nobody waits for it any more, and without its handler it would end the process.
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, was or signal.SIG_DFL)
