"""Limits on reports per second, without asking who sent them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from collector.limiter import TokenBucket
from collector.problems import TOO_MANY_REPORTS, ProblemError


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
