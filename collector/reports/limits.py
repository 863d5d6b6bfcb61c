"""How many reports are taken a second, without asking whose they are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock

from collector.http.problems import TOO_MANY_REPORTS, ProblemError

BURST_SECONDS = 10.0


class TokenBucket:
    """Holds up to BURST_SECONDS of `rate` tokens, and gains `rate` a second.

    A full bucket lets a batch of any size through and owes the rest, so that no batch is refused
    for ever. rate: 0 for no limit.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = Lock()
        self._most = rate * BURST_SECONDS
        self._tokens = self._most
        self._filled = clock()

    def wait_for(self, tokens: int) -> float:
        """Take the tokens and return 0, or take none and return the seconds until there are enough."""
        if self._rate == 0:
            return 0.0
        with self._lock:
            now = self._clock()
            self._tokens = min(self._most, self._tokens + (now - self._filled) * self._rate)
            self._filled = now
            missing = min(tokens, self._most) - self._tokens
            if missing <= 0:
                self._tokens -= tokens
            return max(0.0, missing / self._rate)

    def give_back(self, tokens: int) -> None:
        """Undo the taking of tokens that were not used."""
        with self._lock:
            self._tokens += tokens


class UploadLimits:
    """The limits of one process: on uploads as a whole, and on those for each study."""

    def __init__(
        self, upload_rate: float, study_rate: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._all = TokenBucket(upload_rate, clock)
        self._study_rate = study_rate
        self._clock = clock
        self._studies: dict[str, TokenBucket] = {}

    def take(self, study_id: str, reports: int) -> None:
        """Count reports for a published study. Raises ProblemError above a limit."""
        study = self._studies.get(study_id)
        if study is None:
            study = self._studies.setdefault(study_id, TokenBucket(self._study_rate, self._clock))
        seconds = study.wait_for(reports) or self._wait_for_all(study, reports)
        if seconds:
            retry = {"Retry-After": str(math.ceil(seconds))}
            raise ProblemError(TOO_MANY_REPORTS, "more reports came than are taken a second", headers=retry)

    def _wait_for_all(self, study: TokenBucket, reports: int) -> float:
        """The seconds until there are enough tokens for all; what others send uses up none of the study's."""
        seconds = self._all.wait_for(reports)
        if seconds:
            study.give_back(reports)
        return seconds
