"""Tries to stop a fit, or to leave it no room: none is shown that was not made, and others get theirs."""

from __future__ import annotations

import errno
import os
import tempfile

import pytest

from collector.operator import fitting
from collector.operator.fitting import Fitted, Fitter
from collector.operator.posteriors_cli import run_posteriors
from collector.reports.paging import Opened
from ldp_client.cli import build_parser

NO_ROOM = "cannot keep temporary files in {}: No space left on device; set TMPDIR to a folder with more room"
MADE = Fitted(fitting.this_day(), {"ever": {"ok": True}})


def status(harness, study_id="habits"):
    return harness.client.get(f"/v1/studies/{study_id}/status", headers=harness.operator).json


def ages(harness):
    text = harness.client.get("/metrics", headers=harness.operator).text
    return [line for line in text.splitlines() if line.startswith("ldpkit_study_posterior_age_days{")]


@pytest.fixture
def source(habits, make_study, make_report):
    """Two studies with reports."""
    other = make_study(id="other")
    habits.publish(other)
    for study in (make_study(), other):
        habits.put(make_report(study))
    return Opened(habits.collector.database, habits.collector.rules)


@pytest.fixture
def full(monkeypatch):
    """A folder for temporary files that takes nothing, until it is told that there is room."""
    with monkeypatch.context() as patched:

        def refused(*_given, **_options):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(fitting.Path, "write_text", refused)
        yield patched.undo


def test_a_fit_that_is_under_way_or_was_stopped_is_none(habits, source, monkeypatch):
    seen = []

    def stopped(*_given):
        seen.append((status(habits)["posterior"], ages(habits)))
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "run_fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        Fitter(source).fit_all()
    assert seen == [(None, [])]
    assert (status(habits)["posterior"], ages(habits)) == (None, [])


def test_without_room_each_study_says_so_and_is_fitted_once_there_is_some(
    habits, source, full, monkeypatch, caplog
):
    where = NO_ROOM.format(tempfile.gettempdir())
    fitter = Fitter(source)
    written = []
    monkeypatch.setattr(
        fitting, "keep_fitted", lambda *given, keep=fitting.keep_fitted: (written.append(given), keep(*given))
    )
    for _ in range(2):
        fitter._due.clear()
        assert not fitter.fit_all()
    # A placeholder and why there is none, of each; not at every look.
    assert len(written) == 4
    for study_id in ("habits", "other"):
        assert status(habits, study_id)["posterior"]["failure"] == where
        assert f"the last fit failed: {where}" in status(habits, study_id)["attention"]
        assert caplog.text.count(f"{study_id}: its posteriors cannot be fitted: {where}") == 1
    full()
    monkeypatch.setattr(fitting, "run_fit", lambda *_given: MADE)
    fitter._due.clear()
    assert fitter.fit_all()
    assert [status(habits, one)["posterior"]["failure"] for one in ("habits", "other")] == [None, None]


def test_a_fit_that_cannot_be_started_stops_no_other(habits, source, monkeypatch):
    monkeypatch.setattr(fitting, "LDPKIT", ["/nowhere/python"])
    assert not Fitter(source).fit_all()
    for study_id in ("habits", "other"):
        failure = status(habits, study_id)["posterior"]["failure"]
        assert failure == "`ldpkit fit` cannot be started: No such file or directory"


@pytest.mark.usefixtures("source", "full")
def test_once_ends_with_a_code_that_says_that_there_was_no_room(habits, monkeypatch):
    monkeypatch.setattr(os, "nice", lambda _by: 0)
    call = ["posteriors", "--once", "--database", f"sqlite:///{habits.path}"]
    assert run_posteriors(build_parser().parse_args(call)) == 1
