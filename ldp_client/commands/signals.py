"""Signals that end a command, wherever its libraries are when they arrive."""

import signal
import sys
import threading
from contextlib import contextmanager

from ldp_client.documents.errors import EXIT_TERMINATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from sys import UnraisableHookArgs

# What each signal raises. Python drops it where it meets a callback, as of its garbage collection.
RAISED = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
# Until the callback has ended, with next to nothing of a second one.
AGAIN_SECONDS = 0.02


@contextmanager
def ending_by_signal() -> "Iterator[None]":
    """Let SIGINT raise KeyboardInterrupt and SIGTERM SystemExit, so that a command cleans up after itself.

    Where either is dropped it is raised again: no long work goes on that somebody has ended.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    told = sys.unraisablehook

    def dropped(unraisable: "UnraisableHookArgs") -> None:
        number = RAISED.get(unraisable.exc_type)
        if number is None:
            told(unraisable)
        else:
            threading.Timer(AGAIN_SECONDS, signal.raise_signal, (number,)).start()

    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = told
