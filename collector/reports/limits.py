"""Limits on reports per second, without asking who sent them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from collector.limiter import TokenBucket
from collector.problems import TOO_MANY_REPORTS, ProblemError


class UploadLimits:
    """The limit of one process on the reports to each study, so that a flood of one stops no other.

    rate: reports a second; 0 for no limit.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._studies: dict[str, TokenBucket] = {}

    def let_in(self, study_id: str, reports: int = 1) -> None:
        """Raise ProblemError if so many reports may not enter now."""
        bucket = self._studies.get(study_id)
        if bucket is not None and (seconds := bucket.let_in(reports)):
            retry = {"Retry-After": str(math.ceil(seconds))}
            detail = "more reports arrived than are accepted a second"
            raise ProblemError(TOO_MANY_REPORTS, detail, headers=retry)

    def take(self, study_id: str, stored: int) -> None:
        """Count the stored reports of an upload to a published study."""
        if self._rate:
            self._studies.setdefault(study_id, TokenBucket(self._rate, self._clock)).take(stored)
