"""Limits on reports and deletions per second, without asking who sent them."""

import math
import time
from collections.abc import Callable

from collector.limiter import TokenBucket
from collector.problems import TOO_MANY_DELETIONS, TOO_MANY_REPORTS, Kind, ProblemError

# Deletions a second that one process makes for devices.
DELETION_RATE = 100.0


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
        if bucket is not None:
            _let_in(bucket, reports, TOO_MANY_REPORTS, "more reports arrived than are accepted a second")

    def take(self, study_id: str, stored: int) -> None:
        """Count the stored reports of an upload to a published study."""
        if self._rate:
            self._studies.setdefault(study_id, TokenBucket(self._rate, self._clock)).take(stored)


class Deletions:
    """The deletions that devices may make in one process.

    rate: a second. Deletions of reports that are not stored get UNKNOWN_SHARE of it: an
    attacker can draw secrets, and each deletion leaves a row.
    """

    UNKNOWN_SHARE = 0.1

    def __init__(self, rate: float) -> None:
        self._known = TokenBucket(rate)
        self._unknown = TokenBucket(self.UNKNOWN_SHARE * rate)

    def take(self, is_known: bool) -> None:
        """Admit one more deletion. Raises ProblemError above the limit. is_known: the report is stored."""
        bucket = self._known if is_known else self._unknown
        _let_in(bucket, 1, TOO_MANY_DELETIONS, "more deletions arrived than are made a second")
        bucket.take()


def _let_in(bucket: TokenBucket, count: int, kind: Kind, detail: str) -> None:
    """Raise ProblemError, with the seconds to wait, if so many may not enter now."""
    if seconds := bucket.let_in(count):
        raise ProblemError(kind, detail, headers={"Retry-After": str(math.ceil(seconds))})
