"""Limits on reports per second, without asking who sent them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from collector.problems import TOO_MANY_REPORTS, ProblemError

BURST_SECONDS = 10.0
DEBT_SECONDS = 10.0


class TokenBucket:
    """Holds up to BURST_SECONDS of `rate` tokens, and gains `rate` a second. rate: 0 for no limit.

    Each stored report takes a token, after it is stored. Rejected reports and duplicates take no token. A
    full bucket admits a batch of any size, so that no batch is rejected forever. Its debt is at most
    DEBT_SECONDS (or one report, if that is more). Batches being written hold back only other batches.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = Lock()
        self._most = rate * BURST_SECONDS
        self._least = -max(1.0, rate * DEBT_SECONDS)
        self._tokens = self._most
        self._promised = 0
        self._filled = clock()

    def let_in(self, reports: int) -> float:
        """Return 0 if so many reports may enter now (then call settle), else the seconds to wait."""
        if self._rate == 0:
            return 0.0
        with self._lock:
            self._fill()
            promised = self._promised if reports > 1 else 0
            missing = min(reports, self._most) - (self._tokens - promised)
            if missing <= 0:
                self._promised += reports if reports > 1 else 0
            return max(0.0, min(missing, self._most - self._least) / self._rate)

    def has_spare(self) -> bool:
        """Return True if more than half of the tokens are left."""
        with self._lock:
            self._fill()
            return self._tokens > self._most / 2

    def settle(self, reports: int, stored: int) -> None:
        """Take tokens for the stored reports, and release the promise for the admitted reports."""
        if self._rate == 0:
            return
        with self._lock:
            self._fill()
            self._promised -= reports if reports > 1 else 0
            self._tokens = max(self._tokens - stored, self._least)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._most, self._tokens + (now - self._filled) * self._rate)
        self._filled = now


class Stored:
    """The number of an upload's reports that were stored; the sender of the upload sets it."""

    count = 0


class UploadLimits:
    """The limits of one process: on all uploads together, and half of that for each study.

    A study may exceed its half while more than half of the whole allowance is left.
    """

    def __init__(self, upload_rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.unlimited = not upload_rate
        self._all = TokenBucket(upload_rate, clock)
        self._study_rate = upload_rate / 2
        self._clock = clock
        self._studies: dict[str, TokenBucket] = {}

    def require_some(self, study_id: str) -> None:
        """Raise ProblemError if not even one report would be admitted, before spending anything on it."""
        study = self._studies.get(study_id)
        if not self.unlimited and study is not None:
            _refuse_for(0 if self._all.has_spare() else study.let_in(1) or self._all.let_in(1))

    @contextmanager
    def letting_in(self, study_id: str, reports: int) -> Iterator[Stored]:
        """Admit reports for a published study, which the block stores. Raises ProblemError above a limit."""
        study = self._studies.get(study_id)
        if study is None:
            study = self._studies.setdefault(study_id, TokenBucket(self._study_rate, self._clock))
        beyond = study.let_in(reports)
        if beyond and not self._all.has_spare():
            _refuse_for(beyond)
        stored = Stored()
        try:
            _refuse_for(self._all.let_in(reports))
            try:
                yield stored
            finally:
                self._all.settle(reports, stored.count)
        finally:
            # Reports beyond the study's share were promised nothing.
            study.settle(1 if beyond else reports, stored.count)


def _refuse_for(seconds: float) -> None:
    if seconds:
        retry = {"Retry-After": str(math.ceil(seconds))}
        raise ProblemError(TOO_MANY_REPORTS, "more reports arrived than are accepted a second", headers=retry)
