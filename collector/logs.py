"""Log lines that an outage cannot multiply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

LOGGER = logging.getLogger("collector")
REST_SECONDS = 60.0


class Seldom:
    """Logs a line at once, and the same again no sooner than REST_SECONDS later, with how often it came.

    So an outage shows at once and fills no disk.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._seen: dict[str, tuple[float, int]] = {}

    def log(self, level: int, line: str, cause: BaseException | None = None) -> None:
        """Log a line, or count it. cause: logged with it, and each of its kind counts by itself."""
        key = line if cause is None else f"{line}: {type(cause).__name__}"
        now = self._clock()
        with self._lock:
            due, left_out = self._seen.get(key, (now, 0))
            if now < due:
                self._seen[key] = due, left_out + 1
                return
            self._seen[key] = now + REST_SECONDS, 0
        more = f" (and {left_out} times since this was last logged)" if left_out else ""
        LOGGER.log(level, "%s%s", line, more, exc_info=cause)

    def forget(self) -> None:
        """Log everything again."""
        self._seen.clear()


SELDOM = Seldom()
log_seldom = SELDOM.log
