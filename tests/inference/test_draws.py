"""How many draws a fit keeps, and that the remedies it names can be used."""

import re

import numpy as np
import pytest

from inference import fit, summarize
from inference.results.diagnostics import diagnose
from inference.samplers import KEEP_MORE
from inference.sampling import gaussian_approximation as laplace
from inference.sampling.gaussian_approximation import ImportanceWeights
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError
from ldpkit.cli import build_parser, main
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO))


@pytest.fixture(scope="module")
def summary():
    part = QuestionSummary(3000, np.asarray([1900, 1100]))
    return Summary(STUDY.id, STUDY.version, STUDY.digest, {"ever": part})


@pytest.mark.slow
def test_fit_keeps_the_requested_number_of_draws(summary):
    found = fit(STUDY, summary, draws=1200)["ever"]
    assert found.draws["p"].shape == (4, 1200)
    assert found.to_document()["draws"] == 1200
    assert found.diagnostics.ok


@pytest.mark.parametrize("draws", [0, -100, 150, 20_100, 1000.0, True])
def test_invalid_number_of_draws_is_rejected(summary, draws):
    with raises(InputError, "fit.wrong_draw_count", "100", "20000"):
        fit(STUDY, summary, draws=draws)


def test_draws_option_is_rejected_for_published_method():
    study = Study(studies.document(studies.DDPLR_TABLE, **studies.HOLDER))
    with raises(InputError, "fit.draws_not_for_method", "mcmc_fixeds"):
        fit(study, Summary.empty(study), method="mcmc_fixeds", draws=2000)


def test_options_named_in_reasons_exist():
    found = diagnose({"x": np.random.default_rng(1).normal(size=(4, 30))}, np.zeros((4, 30), bool))
    named = {option for line in found.reasons for option in re.findall(r"--[a-z]+", line)}
    assert named == set(re.findall(r"--[a-z]+", KEEP_MORE)) == {"--draws"}
    command = ["fit", "study.json", "reports.ndjson", "--out", "result", "--draws", "4000"]
    assert build_parser().parse_args(command).draws == 4000


def test_fit_command_passes_the_number_of_draws_on(tmp_path, capsys):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    reports = [perturb_answers(STUDY, {"ever": mechanism_for(STUDY.questions[0])}, {"ever": True})]
    (tmp_path / "summary.json").write_text(summarize(STUDY, reports).to_json())
    command = ["fit", str(tmp_path / "study.json"), str(tmp_path / "summary.json"), "--draws", "150"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "a multiple of 100 from 100 to 20000" in capsys.readouterr().err


@pytest.mark.slow
def test_approximation_is_judged_by_weights_not_by_r_hat(summary, monkeypatch):
    """Worth 404 draws: R-hat and ESS of four chains of 101 would be chance."""
    few = np.where(np.arange(4000) < 404, 1 / 404, 0.0)
    monkeypatch.setattr(laplace, "weigh", lambda _ratios: ImportanceWeights(few, 0.1))
    for seed in range(6):
        found = fit(STUDY, summary, seed, method="gaussian_approx")["ever"]
        assert found.draws["p"].size == 404
        assert found.diagnostics.reasons == ()


def test_independent_draws_that_are_not_finite_are_not_ok():
    draws = {"x": np.full((4, 100), np.nan), "y": np.zeros((4, 100))}
    found = diagnose(draws, np.zeros((4, 100), bool), chained=False)
    assert found.reasons == ("draws of x are not finite: use --method nuts",)


def test_reasons_end_with_the_given_remedy():
    draws = {"x": np.random.default_rng(1).normal(size=(4, 30))}
    found = diagnose(draws, np.zeros((4, 30), bool), remedy="use marginal")
    assert found.reasons
    assert all(line.endswith("use marginal") for line in found.reasons)


def test_nothing_is_fitted_before_all_models_are_built():
    """Bounds too far from 0 for a Poisson law, after a question that could be fitted."""
    far = {**studies.NUMBER, "bounds": ["20000", "20010"], "model": {"name": "poisson"}}
    study = Study(studies.document(studies.YES_NO, far))
    told = []
    parts = {**Summary.empty(study).questions, "ever": QuestionSummary(2, np.asarray([1, 1]))}
    with raises(InputError, "fit.bounds_too_wide"):
        fit(study, Summary(study.id, 1, study.digest, parts), progress=told.append)
    assert told == []
