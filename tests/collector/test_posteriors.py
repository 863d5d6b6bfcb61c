"""Running posteriors: when they are fitted, by whom, and what the operator's page says of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from collector.operator import fitting
from collector.operator.fitting import Fitted, Fitter, keep_fitted, last_fitted
from collector.operator.retention import delete_reports, delete_study
from collector.reports.paging import Opened
from tests import studies
from tests.collector.answered import basic
from tests.collector.conftest import REPOSITORY, build_report, wait_for
from tests.statistics import seed_the_system

# Stands in for `ldpkit fit STUDY SUMMARY --out DIR`: writes down that it ran, and a posterior.
STAND_IN = """
import json, pathlib, sys
_, _, study, summary, _, out = sys.argv[1:]
ran = pathlib.Path({ran!r})
ran.write_text(ran.read_text() + "." if ran.exists() else ".")
parts = json.loads(pathlib.Path(summary).read_text())["questions"]
row = dict(mean=0.25, sd=0.1, q05=0.125, q50=0.25, q95=0.375)
same = dict(model="m", ok=True, reasons=[], notes=["a note"], parameters=dict(p=row))
questions = {{name: dict(same, n=part["n"]) for name, part in parts.items()}}
pathlib.Path(out).mkdir()
(pathlib.Path(out) / "posterior.json").write_text(json.dumps(dict(study="", seed=0, questions=questions)))
"""
FAILING = "import sys; print('first'); sys.exit('ldpkit: the model <does> not fit')"
ENDLESS = "import os, pathlib, time; pathlib.Path({pid!r}).write_text(str(os.getpid())); time.sleep(600)"


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, monkeypatch):
        self.now = 1_000_000.0
        monkeypatch.setattr(fitting.time, "monotonic", lambda: self.now)


@pytest.fixture
def fits(tmp_path, monkeypatch):
    """Counts fits by the stand-in."""
    ran = tmp_path / "ran"
    monkeypatch.setattr(fitting, "LDPKIT", [sys.executable, "-c", STAND_IN.format(ran=str(ran)), "x"])
    return lambda: len(ran.read_text()) if ran.exists() else 0


@pytest.fixture
def opened(habits):
    return Opened(habits.collector.database, habits.collector.rules)


def page(harness, token):
    return re.sub(r"\s+", " ", harness.client.get("/", headers=basic(token)).text)


def test_the_page_says_why_there_is_no_posterior_and_then_shows_it(habits, study, opened, fits, token):
    assert "No posterior yet: there are no reports of this version." in page(habits, token)
    Fitter(opened).fit_all()
    assert fits() == 0
    habits.put(build_report(study))
    # Reports are counted again when that took long enough ago.
    wait_for(lambda: "No posterior yet: it comes with the next fit." in page(habits, token))
    Fitter(opened).fit_all()
    text = page(habits, token)
    assert "Posterior from 1 reports" in text
    for words in ("fitted today", "sound", "0.25", "0.125 to 0.375", "a note"):
        assert words in text
    assert "No posterior yet" not in text


def test_a_study_is_fitted_when_it_changed_and_rested(habits, study, opened, fits, monkeypatch):
    clock = Clock(monkeypatch)
    fitter = Fitter(opened)
    habits.put(build_report(study))
    monkeypatch.setattr(fitting, "read_summary", slowed(clock, fitting.read_summary, 3.0))
    fitter.fit_all()
    habits.put(build_report(study))
    clock.now += 3.0 * fitting.REST - 1
    fitter.fit_all()
    assert fits() == 1
    clock.now += 2
    fitter.fit_all()
    assert fits() == 2
    clock.now += 1000
    fitter.fit_all()
    assert fits() == 2


def slowed(clock, function, seconds):
    def slow(*arguments):
        clock.now += seconds
        return function(*arguments)

    return slow


def test_a_new_process_does_not_fit_again_what_is_fitted(habits, study, opened, fits):
    habits.put(build_report(study))
    Fitter(opened).fit_all()
    Fitter(opened).fit_all()
    assert fits() == 1
    habits.put(build_report(study))
    Fitter(opened).fit_all()
    assert fits() == 2


def test_as_many_other_reports_are_fitted_anew(habits, study, opened, fits):
    """Else what was withdrawn would stay in the posterior."""
    gone = build_report(study)
    habits.put(gone)
    Fitter(opened).fit_all()
    habits.withdraw(gone.id)
    other = {name: bytes(len(payload)) for name, payload in gone.payloads.items()}
    habits.put(build_report(study, payloads=other))
    Fitter(opened).fit_all()
    assert fits() == 2


@pytest.mark.parametrize("delete", ["withdraw", "expire", "delete-study"])
def test_no_posterior_outlives_its_reports(habits, study, opened, fits, token, delete):
    report = build_report(study)
    habits.put(report)
    Fitter(opened).fit_all()
    database = habits.collector.database
    if delete == "withdraw":
        habits.withdraw(report.id)
        Fitter(opened).fit_all()
    elif delete == "expire":
        delete_reports(database, "habits", habits.day + timedelta(1))
    else:
        delete_study(database, "habits")
    assert fits() == 1
    with database.read() as session:
        assert last_fitted(session, 1, 1) is None
    assert "No posterior yet" in page(habits, token)


@pytest.mark.parametrize("again", [False, True])
def test_no_posterior_of_reports_that_were_deleted_while_it_was_fitted(
    habits, study, opened, fits, token, monkeypatch, again
):
    """The first fit of a study, or a later one."""
    habits.put(build_report(study))
    if again:
        Fitter(opened).fit_all()
        habits.put(build_report(study))
    database, run = habits.collector.database, fitting.run_fit

    def run_and_delete(*arguments):
        delete_study(database, "habits")
        return run(*arguments)

    monkeypatch.setattr(fitting, "run_fit", run_and_delete)
    Fitter(opened).fit_all()
    assert fits() == 1 + again
    with database.read() as session:
        assert last_fitted(session, 1, 1) is None
    assert "No posterior yet" in page(habits, token)


def test_nor_where_another_fitter_has_begun_anew_meanwhile(habits, study, opened, monkeypatch):
    """Its fit, of what was left, was replaced by one of what was deleted."""
    reports = [build_report(study) for _ in range(2)]
    for report in reports:
        habits.put(report)
    database, of = habits.collector.database, []

    def run(_study, summary):
        many = json.loads(summary)["questions"]["ever"]["n"]
        of.append(many)
        if len(of) == 1:
            delete_reports(database, "habits")
            habits.put(build_report(study))
            Fitter(opened).fit_all()
        return fitting.Fitted(fitting.this_day(), {"of": many})

    monkeypatch.setattr(fitting, "run_fit", run)
    Fitter(opened).fit_all()
    assert of == [2, 1]
    with database.read() as session:
        assert last_fitted(session, 1, 1).questions == {"of": 1}


def test_a_killed_first_fit_stops_no_later_one(habits, study, opened, fits, token, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    habits.put(build_report(study))
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "run_fit", killed)
        with pytest.raises(KeyboardInterrupt):
            Fitter(opened).fit_all()
    assert "No posterior yet" in page(habits, token)
    Fitter(opened).fit_all()
    assert fits() == 1
    assert "No posterior yet" not in page(habits, token)


def test_a_posterior_stays_where_nothing_is_deleted_and_comes_back_where_it_went(habits, study, opened, fits):
    """Whether or not what was deleted is part of the summary that was fitted."""
    habits.put(build_report(study))
    fitter = Fitter(opened)
    fitter.fit_all()
    assert delete_reports(habits.collector.database, "habits", habits.day) == 0
    with habits.collector.database.read() as session:
        assert last_fitted(session, 1, 1) is not None
    with habits.collector.database.write() as session:
        fitting.forget_fitted(session, 1)
    fitter._due.clear()
    fitter.fit_all()
    with habits.collector.database.read() as session:
        assert last_fitted(session, 1, 1) is not None
    assert fits() == 2


def test_why_there_is_no_summary_is_written_once(make_harness, make_study, token, monkeypatch):
    """Not at every look: each is a transaction that uploads wait for."""
    harness = make_harness()
    harness.publish(make_study(questions=[{**studies.LOGISTIC, "mechanism": studies.NOISY_RECORD}]))
    written = []
    monkeypatch.setattr(fitting, "keep_fitted", lambda *given: (written.append(given), keep_fitted(*given)))
    for _ in range(3):
        Fitter(Opened(harness.collector.database, harness.collector.rules)).fit_all()
    assert len(written) == 1
    assert "This study has no summary" in page(harness, token)


def test_the_fitter_outlives_a_full_disk(opened, monkeypatch, caplog):
    class EndedError(Exception):
        pass

    def full(_self):
        raise OSError(28, "No space left on device")

    def ended(_seconds):
        raise EndedError

    monkeypatch.setattr(Fitter, "fit_all", full)
    monkeypatch.setattr(fitting.time, "sleep", ended)
    with pytest.raises(EndedError):
        Fitter(opened).watch(os.getppid())
    assert "No space left on device" in caplog.text


def test_a_fault_with_one_study_leaves_the_others_their_posteriors(
    make_harness, make_study, monkeypatch, caplog, fits
):
    harness = make_harness()
    for study in (make_study(id="first"), make_study(id="second")):
        harness.publish(study)
        harness.put(build_report(study))
    sound = fitting.read_summary

    def faulty(source, study_id):
        if study_id == "first":
            raise ValueError("the answers were 1, 2 and 3")
        return sound(source, study_id)

    monkeypatch.setattr(fitting, "read_summary", faulty)
    Fitter(Opened(harness.collector.database, harness.collector.rules)).fit_all()
    assert fits() == 1
    assert "first: its posteriors cannot be fitted: ValueError" in caplog.text
    assert "1, 2 and 3" not in caplog.text


def test_a_failed_fit_is_shown_in_one_line(habits, study, opened, monkeypatch, token):
    monkeypatch.setattr(fitting, "LDPKIT", [sys.executable, "-c", FAILING])
    habits.put(build_report(study))
    Fitter(opened).fit_all()
    assert "The last fit failed: ldpkit: the model &lt;does&gt; not fit" in page(habits, token)


@pytest.mark.slow
def test_a_fit_without_an_end_is_given_up(habits, study, opened, monkeypatch, tmp_path, token):
    pid = tmp_path / "pid"
    monkeypatch.setattr(fitting, "LDPKIT", [sys.executable, "-c", ENDLESS.format(pid=str(pid))])
    # Within it a busy machine starts the command.
    monkeypatch.setattr(fitting, "MOST_SECONDS", 8.0)
    habits.put(build_report(study))
    Fitter(opened).fit_all()
    assert "The last fit failed" in page(habits, token)
    assert not Path(f"/proc/{pid.read_text()}").exists()


def test_age_verdict_and_many_parameters(habits, monkeypatch, token):
    monkeypatch.setattr(fitting, "this_day", lambda: 10_000)
    row = {"mean": 0.0, "sd": 1.0, "q05": -1.0, "q50": 0.0, "q95": 1.0}
    rows = {f"p[{number}]": {**row, "mean": float(number)} for number in range(100)}
    part = {"model": "m", "n": 7, "ok": False, "reasons": ["R-hat <b>"], "notes": [], "parameters": rows}
    with habits.collector.database.write() as session:
        keep_fitted(session, 1, 1, Fitted(10_000 - 2, {"hours": part}))
    text = page(habits, token)
    for words in ("fitted 2 days ago", "not to be trusted", "R-hat &lt;b&gt;", "p[99]", "88 more"):
        assert words in text
    assert "p[3]" not in text


@pytest.mark.slow
def test_it_ends_with_its_fit_when_it_is_told_to(habits, study, tmp_path):
    """SIGTERM in the middle of a fit leaves no process behind."""
    pid = tmp_path / "pid"
    habits.put(build_report(study))
    code = (
        f"from collector.operator import fitting; import sys; from ldp_client.cli import main\n"
        f"fitting.LDPKIT = [sys.executable, '-c', {ENDLESS.format(pid=str(pid))!r}]\n"
        f"sys.exit(main(['posteriors', '--database', 'sqlite:///{habits.path}']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    wait_for(lambda: pid.exists() and pid.read_text())
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    wait_for(lambda: not Path(f"/proc/{pid.read_text()}").exists())


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_has_one_fitter_that_ends_with_it(start_server, kill):
    """Also where it cannot say goodbye; the workers have none."""
    server = start_server("--posteriors", "--server", "granian", "--workers", "2")
    fitters = [pid for pid in server.children() if b"\0posteriors" in command_line(pid)]
    assert len(fitters) == 1
    os.kill(server.process.pid, kill)
    server.process.wait(30)
    wait_for(lambda: not Path(f"/proc/{fitters[0]}").exists())


@pytest.mark.slow
def test_a_fitter_that_starts_after_its_server_ended_ends_at_once(habits):
    """Its parent is then another process."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    command = [sys.executable, "-m", "ldp_client.cli", "posteriors", "--beside", str(ended.pid)]
    database = ["--database", f"sqlite:///{habits.path}"]
    subprocess.run(
        [*command, *database], env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=True, timeout=60
    )


@pytest.mark.slow
def test_the_true_fit_reads_what_the_collector_keeps(make_harness, make_study, token, monkeypatch):
    """`ldpkit posteriors --once` with the inference package, and the page that follows from it."""
    seed_the_system(monkeypatch, "reports")
    yes_no = {"id": "ever", "ask": "yes_no", "mechanism": {"name": "randomized_response", "epsilon": "3"}}
    study = make_study(questions=[{**yes_no, "model": {"name": "bernoulli"}}])
    harness = make_harness()
    harness.publish(study)
    harness.post([build_report(study).to_document() for _ in range(300)])
    command = [sys.executable, "-m", "ldp_client.cli", "posteriors", "--once"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "LDPKIT_DATABASE": f"sqlite:///{harness.path}",
    }
    subprocess.run(command, env=environment, check=True)
    text = page(harness, token)
    assert "Posterior from 300 reports" in text
    low, high = map(float, re.search(r"<td>([\d.]+) to ([\d.]+)</td>", text).groups())
    # Everybody said yes.
    assert 0.9 < low < high <= 1
