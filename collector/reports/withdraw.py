"""Permanent deletion of one report, by the device that made it or by an operator."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from collector import store
from collector.clock import settled_day
from collector.metrics import Metrics
from collector.problems import (
    REPORT_UNKNOWN,
    TOO_MANY_DELETIONS,
    ProblemError,
    unknown_study,
)
from collector.reports.limits import TokenBucket
from collector.reports.sums import take_back_reports
from collector.store import insert_withdrawn, was_withdrawn, withdraw_report

if TYPE_CHECKING:
    from collector.context import Collector

WITHDRAWN = "withdrawn"
# Deletions a second that one process makes for devices.
DELETION_RATE = 100.0
LOGGER = logging.getLogger("collector")


def withdraw(
    collector: Collector,
    study_id: str,
    report_id: bytes,
    by_device: bool,
    refuse: Callable[[Session, store.StudyState], None] = lambda _session, _study: None,
) -> None:
    """Delete a report except its id, durable on return. Deleting it again changes nothing.

    by_device: its device asked, which may do so before the report arrives. refuse: raises if the study does
    not allow this deletion. Raises ProblemError for an unknown study, for an unknown report that no device
    asks for, and for devices above the limits: strangers never limit an operator.
    """
    if by_device and _is_done(collector, study_id, report_id):
        return
    find = partial(collector.rules.find, reserved=True)

    def act(session: Session) -> None:
        study = store.study_state(session, study_id, keep=True)
        if study is None:
            raise unknown_study(study_id)
        refuse(session, study)
        day = settled_day(session, collector.today())
        report = withdraw_report(session, study.number, day, report_id)
        if report is None and not by_device:
            raise ProblemError(REPORT_UNKNOWN, "no report with this id is stored")
        if report is None and not study.final and not insert_withdrawn(session, study.number, day, report_id):
            # The report arrived meanwhile.
            report = withdraw_report(session, study.number, day, report_id)
        if report is not None:
            take_back_reports(session, find, study_id, study.number, [report])

    collector.writer.change((study_id, report_id), act)
    collector.deletions.count(by_device)


def _is_done(collector: Collector, study_id: str, report_id: bytes) -> bool:
    """Return True for a report that was withdrawn before: that needs no write.

    Otherwise the deletion is charged: that of an unknown id to an allowance of its own, so that invented ids
    use up nothing of the others'. Raises ProblemError for an unknown study, and above the limits.
    """
    with collector.database.read() as session:
        study = store.study_state(session, study_id)
        if study is None:
            raise unknown_study(study_id)
        is_withdrawn = was_withdrawn(session, study.number, report_id)
    if is_withdrawn is None:
        collector.deletions.take_unknown()
    elif not is_withdrawn:
        collector.deletions.take()
    return bool(is_withdrawn)


class Deletions:
    """The authorized deletions in one process: limited in rate, counted, and logged as counts.

    rate: a second. Deletions of reports that are not stored get UNKNOWN_SHARE of it: an
    attacker can draw secrets, and each deletion leaves a row. A log line has the count since the last line.
    It is written for every LINE_EVERY deletions, or after LINE_SECONDS for at least LINE_LEAST: no line dates
    one deletion.
    """

    UNKNOWN_SHARE = 0.1
    LINE_EVERY = 100
    LINE_LEAST = 10
    LINE_SECONDS = 600.0

    def __init__(self, rate: float, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._bucket = TokenBucket(rate, clock)
        self._unknown = TokenBucket(self.UNKNOWN_SHARE * rate, clock)
        self._metrics = metrics
        self._clock = clock
        self._lock = Lock()
        self._unlogged = {True: 0, False: 0}
        self._logged = clock()

    def take(self) -> None:
        """Admit one more deletion. Raises ProblemError above the limit."""
        _take(self._bucket)

    def take_unknown(self) -> None:
        """Admit one more deletion of a report that is not stored. Raises ProblemError above the limit."""
        _take(self._unknown)

    def count(self, by_device: bool) -> None:
        """Count a durable deletion. by_device: with the report's secret, else with an operator's key."""
        self._metrics.count_deletion("device" if by_device else "operator")
        with self._lock:
            self._unlogged[by_device] += 1
            waited = self._clock() - self._logged >= self.LINE_SECONDS
            if sum(self._unlogged.values()) >= (self.LINE_LEAST if waited else self.LINE_EVERY):
                self._log()

    def close(self) -> None:
        """Log the remaining counts."""
        with self._lock:
            if any(self._unlogged.values()):
                self._log()

    def _log(self) -> None:
        counts = (self._unlogged[True], self._unlogged[False])
        LOGGER.warning(
            "deletions since the last such line: %d by their devices, %d with an operator's key", *counts
        )
        self._unlogged = {True: 0, False: 0}
        self._logged = self._clock()


def _take(bucket: TokenBucket) -> None:
    seconds = bucket.let_in(1)
    if seconds:
        retry = {"Retry-After": str(math.ceil(seconds))}
        raise ProblemError(TOO_MANY_DELETIONS, "more deletions arrived than are made a second", headers=retry)
    bucket.settle(1, 1)
