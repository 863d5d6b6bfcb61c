import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray

from inference import Posterior, fit, summarize
from inference.results.diagnostics import diagnose
from inference.results.folder import save_report
from inference.results.plot_parameters import shown
from inference.results.predictive import Predictive
from inference.results.saving import new_folder
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError, SummaryError
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO, {**studies.ONE_OF, "text": "Which <b>colour</b>?"}))
MECHANISMS = {question.id: mechanism_for(question) for question in STUDY.questions}
# All answer alike, as far from the prior as can be: of 500 it is a matter of luck whether the prior still
# weighs enough to be told of.
PEOPLE = 2000


@pytest.fixture(scope="module")
def summary():
    answers = {"ever": True, "colour": "worker"}
    random = NotForRealAnswers(np.random.default_rng(1).bytes)
    return summarize(STUDY, [perturb_answers(STUDY, MECHANISMS, answers, random) for _ in range(PEOPLE)])


@pytest.fixture(scope="module")
def posteriors(summary):
    return fit(STUDY, summary, seed=7)


@pytest.mark.slow
def test_fit_recovers_the_answers(posteriors):
    # All said yes, and worker; the limits are five standard errors of the noise below 1.
    assert posteriors["ever"].rows()["p"]["q05"] > 0.65
    assert posteriors["colour"].rows()["p[worker]"]["q05"] > 0.5
    for posterior in posteriors.values():
        assert posterior.diagnostics.ok, posterior.diagnostics.reasons
        assert posterior.n == PEOPLE
        assert posterior.study_digest == STUDY.digest


@pytest.mark.slow
def test_fit_with_same_seed_repeats_its_draws(posteriors, summary):
    again = fit(STUDY, summary, seed=7)
    for name, posterior in posteriors.items():
        for parameter, draws in posterior.draws.items():
            assert np.array_equal(draws, again[name].draws[parameter])


@pytest.mark.slow
def test_saved_results_read_back(posteriors, tmp_path):
    save_report(STUDY, posteriors, tmp_path)
    document = json.loads((tmp_path / "posterior.json").read_text())
    assert document["study_digest"] == STUDY.digest
    assert document["seed"] == 7
    row = document["questions"]["ever"]["parameters"]["p"]
    assert set(row) == {
        "mean",
        "sd",
        "sd_over_prior_sd",
        "q05",
        "q50",
        "q95",
        "r_hat",
        "ess_bulk",
        "ess_tail",
    }
    assert row["mean"] == pytest.approx(float(posteriors["ever"].draws["p"].mean()))
    data = xarray.open_datatree(tmp_path / "colour.nc", engine="h5netcdf")
    saved = data["posterior"]["p"].sel(choice="worker").values
    assert np.array_equal(saved, posteriors["colour"].draws["p[worker]"])
    assert data.attrs["study_digest"] == STUDY.digest
    for name in ("ever.png", "ever-chains.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_page_escapes_the_study_and_needs_no_network(posteriors, tmp_path):
    save_report(STUDY, posteriors, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "Which &lt;b&gt;colour&lt;/b&gt;?" in page
    assert "<b>colour" not in page
    assert "<script" not in page
    for address in ("http://", "https://"):
        allowed = ("http://www.w3.org/", "http://purl.org/", "http://creativecommons.org/")
        assert all(page[i:].startswith(allowed) for i in range(len(page)) if page.startswith(address, i))


def test_one_question_can_be_saved_alone(posteriors, tmp_path):
    posteriors["ever"].save(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"posterior.json", "ever.nc"}


@pytest.mark.parametrize("seed", [-1, 1 << 32])
def test_a_bad_seed_is_refused(summary, seed):
    with raises(InputError, "fit.wrong_seed"):
        fit(STUDY, summary, seed=seed)


def test_a_summary_of_another_study_is_refused(summary):
    with raises(SummaryError, "summary.other_study_document"):
        fit(Study(studies.document(version=2)), summary)


def chains(random, shift=0.0, length=1000):
    return random.normal(size=(4, length)) + shift * np.arange(4)[:, None]


@pytest.mark.parametrize(
    ("draws", "diverging", "reason"),
    [
        (lambda r: chains(r, shift=0.5), 0, "R-hat of x"),
        (lambda r: chains(r, length=60), 0, "bulk ESS of x"),
        (lambda r: np.cumsum(chains(r), axis=1), 0, "tail ESS of x"),
        (chains, 3, "3 transitions diverged"),
        (lambda _: np.full((4, 1000), np.nan), 0, "R-hat of x"),
    ],
)
def test_bad_draws_are_not_ok_and_say_why(draws, diverging, reason):
    flags = np.zeros((4, 1000), dtype=bool)
    flags[0, :diverging] = True
    found = diagnose({"x": draws(np.random.default_rng(1))}, flags)
    assert not found.ok
    assert any(reason in line for line in found.reasons)


def test_good_draws_are_ok():
    found = diagnose({"x": chains(np.random.default_rng(1))}, np.zeros((4, 1000), dtype=bool))
    assert found.ok
    assert found.notes == ()


def test_devices_to_halve_an_interval():
    """With a prior sd of 2 and a posterior sd of 1, three quarters of the information are the reports'."""
    random = np.random.default_rng(2)
    draws = {"x": (d := chains(random)) / d.std(), "y": d / d.std()}
    found = diagnose(draws, np.zeros((4, 1000), bool))
    posterior = Posterior("q", "normal", 100, draws, {"x": 2.0, "y": 1.0}, found, "digest", 0)
    assert posterior.devices_to_halve()["x"] == pytest.approx(100 * (1 + 3 / 0.75))
    assert posterior.devices_to_halve()["y"] == float("inf")
    # Each of whom answers one of ten questions.
    assert replace(posterior, questions=10).devices_to_halve()["x"] == pytest.approx(1000 * (1 + 3 / 0.75))


def write_half(target):
    with new_folder(target) as folder:
        (folder / "posterior.json").write_text("half")
        raise RuntimeError("stopped")


def test_results_appear_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(RuntimeError, match="stopped"):
        write_half(target)
    assert list(tmp_path.iterdir()) == []
    with new_folder(target) as folder:
        (folder / "posterior.json").write_text("whole")
    assert (target / "posterior.json").read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


KILLED = """
import os, signal, sys
from pathlib import Path
from inference.results.saving import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "posterior.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_fit_leaves_no_result(tmp_path):
    target = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()


@pytest.mark.slow
def test_page_shows_priors_and_predictive_checks(posteriors, tmp_path):
    save_report(STUDY, posteriors, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "p ~ beta(a 1, b 1)" in page
    assert "the prior allows the reports" in page
    assert "no misfit shows" in page


def test_predictive_check_reports_surprise_and_misfit():
    random = np.random.default_rng(1)
    simulated = random.normal(0.5, 0.01, (60, 10))
    fits = Predictive(simulated, simulated, np.full(10, 0.5))
    surprising = Predictive(simulated, simulated, np.full(10, 0.9))
    assert "the prior allows the reports" in fits.in_words()
    assert "no misfit shows" in fits.in_words()
    assert "surprise the prior" in surprising.in_words()
    assert "does not fit" in surprising.in_words()


def test_predictive_check_rarely_fails_a_sound_model():
    """The observed summary is drawn like the simulated ones; a real posterior is closer to it still."""
    random = np.random.default_rng(2)
    alarms = 0
    for groups in (1, 3, 24):
        for _ in range(400):
            found = random.normal(1, 0.1, (61, groups)) + random.normal(0, 0.05, (61, 1))
            alarms += Predictive(found[1:], found[1:], found[0]).misfit
    assert alarms < 6


def test_misfit_spread_over_many_groups_is_found():
    random = np.random.default_rng(3)
    simulated = random.normal(0.5, 0.01, (60, 24))
    observed = 0.5 + 0.023 * np.where(np.arange(24) % 2, 1, -1)
    found = Predictive(simulated, simulated, observed)
    assert found.inside(simulated) > 0.6
    assert found.misfit
    assert "does not fit" in found.in_words()


BIMODAL = np.where(np.arange(100_000) % 2, 0.05, 0.95)


@pytest.mark.slow
def test_answers_of_another_law_are_noted_with_the_numbers():
    """Half of the answers are near one bound and half near the other, which no normal law gives."""
    study = Study(studies.document({**studies.with_epsilon(studies.AGE, "4")}))
    mechanism = mechanism_for(study.questions[0])
    reports = perturb_many(mechanism, 15 + 30 * BIMODAL, NotForRealAnswers(np.random.default_rng(1).bytes))
    values = REDUCTIONS["laplace"].reduce(mechanism, reports)
    age = {"age": QuestionSummary(len(BIMODAL), values)}
    summary = Summary(study.id, study.version, study.digest, age)
    posterior = fit(study, summary, seed=1, method="gaussian_approx")["age"]
    assert posterior.verdict.worst == "fit"
    assert not posterior.diagnostics.ok
    assert "does not fit these reports" in " ".join(posterior.to_document()["verdict"]["fit"]["reasons"])


def fill_the_disk(target):
    with new_folder(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_an_input_error_and_leaves_nothing(tmp_path):
    with raises(InputError, "files.not_writable", "No space"):
        fill_the_disk(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_labels_may_hold_slashes_and_dollars(tmp_path):
    labels = ["teacher/nurse", "$10% to $20%", "under $\\q$"]
    study = Study(studies.document({**studies.ONE_OF, "choices": labels}))
    draws = {f"p[{label}]": chains(np.random.default_rng(1)) for label in labels}
    found = diagnose(draws, np.zeros((4, 1000), bool))
    prior = dict.fromkeys(draws, 5.0)
    posterior = Posterior("colour", "multinomial", 9, draws, prior, found, study.digest, 0)
    save_report(study, {"colour": posterior}, tmp_path)
    data = xarray.open_datatree(tmp_path / "colour.nc", engine="h5netcdf")
    assert list(data["posterior"].coords["choice"].values) == labels


def test_posterior_without_reports_is_not_ok():
    found = diagnose({"x": chains(np.random.default_rng(1))}, np.zeros((4, 1000), bool), n=0)
    assert not found.ok
    assert "no reports" in found.reasons[0]


def test_pages_of_very_many_choices_show_the_largest(posteriors):
    draws = {f"p[{i}]": np.full((4, 100), i / 1e4) for i in range(200)}
    found = Posterior("q", "multinomial", 9, draws, {}, posteriors["ever"].diagnostics, "", 0)
    assert shown(found) == [f"p[{i}]" for i in range(170, 200)]


def test_a_folder_with_other_things_is_not_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with raises(InputError, "result.exists"), new_folder(tmp_path):
        pass
    with raises(InputError, "result.exists"), new_folder(tmp_path / "thesis.tex"):
        pass
