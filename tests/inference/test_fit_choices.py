"""Which questions are fitted, from which seed, with how many chains."""

from __future__ import annotations

import numpy as np
import pytest

from inference import analyse, fit
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO, studies.ONE_OF))
RANDOM = NotForRealAnswers(np.random.default_rng(1).bytes)
REPORTS = [
    perturb_answers(STUDY, mechanisms_of(STUDY), {"ever": True, "colour": "worker"}, RANDOM)
    for _ in range(60)
]


def fast(**more):
    return fit(STUDY, REPORTS, method="gaussian_approx", **more)


@pytest.mark.slow
def test_single_question_gets_same_draws_as_in_full_fit():
    whole, alone = fast(seed=3), fast(seed=3, questions=["colour"])
    assert list(whole) == ["ever", "colour"]
    assert list(alone) == ["colour"]
    for name, draws in alone["colour"].draws.items():
        np.testing.assert_array_equal(draws, whole["colour"].draws[name])
        assert len(draws) == 4
    assert alone["colour"].seed == 3
    six = fast(questions="ever", chains=6)["ever"]
    assert len(six.draws["p"]) == 6
    assert six.verdict.convergence.state == "good"


@pytest.mark.slow
def test_nuts_draws_the_requested_number_of_chains():
    found = fit(STUDY, REPORTS, questions=["ever"], chains=2, draws=1000)["ever"]
    assert found.draws["p"].shape[0] == found.to_arviz()["sample_stats"]["diverging"].shape[0] == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"questions": ["evr"]}, ("study.unknown_question", "evr': did you mean ever")),
        ({"questions": "income"}, ("study.unknown_question", "income': it has ever, colour")),
        ({"questions": []}, "fit.no_questions_named"),
        ({"priors": {"colr": {}}}, ("study.unknown_question", "colr': did you mean colour")),
        ({"chains": 1}, ("fit.wrong_chain_count", "2", "64")),
        ({"chains": 4.0}, ("fit.wrong_chain_count", "2", "64")),
        ({"seed": -1}, "fit.wrong_seed"),
    ],
)
def test_invalid_options_are_rejected_before_reading_reports(asked, said):
    with raises(InputError, said):
        fit(STUDY, None, **asked)


@pytest.mark.slow
def test_analysis_draws_the_requested_number_of_chains():
    found = analyse(STUDY, REPORTS, "ever ~ 1", chains=2, draws=200, method="gaussian_approx", seed=3)
    assert len(found["Intercept"].draws) == 2
    with raises(InputError, "fit.wrong_chain_count", "2", "64"):
        analyse(STUDY, REPORTS, "ever ~ 1", chains=1)


@pytest.mark.slow
def test_command_line_takes_question_chains_and_interval(tmp_path, capsys):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    (tmp_path / "reports.ndjson").write_text("".join(one.to_json() + "\n" for one in REPORTS))
    own = ["fit", f"{tmp_path}/study.json", f"{tmp_path}/reports.ndjson", "--out"]
    shown = ["--level", "0.8", "--interval", "hdi", "--method", "gaussian_approx"]
    assert main([*own, f"{tmp_path}/out", "--question", "ever", "--chains", "3", *shown]) in (0, 4)
    printed = capsys.readouterr().out
    assert "80 % HDI" in printed
    assert "90 %" not in printed
    assert "colour" not in printed
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<th>80 % HDI</th>" in page
    for wrong, code, said in (
        (["--level", "80"], 2, "write 0.8 for 80 %"),
        (["--question", "evr"], 3, "did you mean ever?"),
        (["--formula", "ever ~ 1", "--chains", "1"], 2, "a whole number from 2 to 64"),
    ):
        assert main([*own, f"{tmp_path}/other", *wrong]) == code
        assert said in capsys.readouterr().err
