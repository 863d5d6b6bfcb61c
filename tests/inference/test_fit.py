import json

import numpy as np
import pytest

from inference import fit, summarize
from inference.fit_model import NO_REPORTS, posterior_of
from inference.predictive import MISFIT, Predictive, is_far
from inference.results.convergence import diagnose, mixing
from inference.results.verdict import FIT, NOT_USABLE, USABLE, Finding, Verdict
from inference.sampling import Sampled
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of


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
    found, _ = diagnose({"x": draws(np.random.default_rng(1))}, flags)
    verdict = Verdict.of_findings(found)
    assert verdict.bad
    assert any(reason in line for line in verdict.reasons)


def test_predictive_check_reports_surprise_and_misfit():
    random = np.random.default_rng(1)
    simulated = random.normal(0.5, 0.01, (60, 10))
    for share, far, words in (
        (0.5, False, "the prior allows"),
        (0.9, True, "the reports surprise the prior"),
    ):
        observed = np.full(10, share)
        assert is_far(simulated, observed) == far
        against = (Finding(FIT, MISFIT),) if far else ()
        said = Predictive(simulated, simulated, observed, against).in_words()
        assert words in said
        assert ("the model does not fit" in said) == far


def test_parameters_that_the_sampler_did_not_measure_are_measured():
    draws = {"rate": chains(np.random.default_rng(1)), "mean": chains(np.random.default_rng(2), shift=0.5)}
    known = mixing({"rate": draws["rate"]})
    found, mixed = diagnose(draws, np.zeros((4, 1000), bool), known=known)
    assert set(mixed.r_hat) == set(mixed.ess_bulk) == set(mixed.ess_tail) == set(draws)
    verdict = Verdict.of_findings(found)
    assert verdict.of("rate").word == USABLE
    assert verdict.of("mean").word == NOT_USABLE


def test_posterior_without_reports_is_not_ok():
    draws = {"x": chains(np.random.default_rng(1))}
    sampled = Sampled(draws, np.zeros((4, 1000), bool))
    found = posterior_of(
        sampled, draws, {}, n=0, method="nuts", prior={}, question="q", model="m", study_digest="", seed=0
    )
    assert found.verdict.overall == (NOT_USABLE, (NO_REPORTS,))


ONE = Study(studies.document(studies.YES_NO))
NEWER = Study(studies.document(studies.YES_NO, version=2))


def reports(study, count=30):
    return reports_of(study, [True] * count)


@pytest.fixture
def files(tmp_path):
    for name, study in (("study.json", ONE), ("newer.json", NEWER)):
        (tmp_path / name).write_text(study.to_json())
    return tmp_path


def run_fit(folder, study, found, *more):
    path = folder / "reports.ndjson"
    path.write_text("".join(report.to_json() + "\n" for report in found))
    return main(
        [
            "fit",
            str(folder / study),
            str(path),
            "--out",
            str(folder / "out"),
            "--method",
            "gaussian_approx",
            *more,
        ]
    )


@pytest.mark.attack(16)
def test_reports_of_the_wrong_version_are_rejected(files, capsys):
    """Fit a newer version of a study to reports on the older one."""
    assert run_fit(files, "newer.json", reports(ONE)) == 3
    said = capsys.readouterr().err
    assert "30 answer survey version 1 with digest " + ONE.digest in said
    assert NEWER.digest in said
    assert not (files / "out").exists()


def test_fit_without_reports_is_rejected(files, capsys):
    assert run_fit(files, "study.json", []) == 3
    assert "there are no reports" in capsys.readouterr().err
    with raises(InputError, "reports.none"):
        fit(ONE, summarize(ONE, []))


@pytest.mark.attack(19)
@pytest.mark.slow
def test_reports_of_other_versions_are_noted_in_the_result(files, capsys):
    """Mix reports on another version into the file."""
    run_fit(files, "study.json", [*reports(ONE, 400), *reports(NEWER, 7)])
    notes = json.loads((files / "out" / "posterior.json").read_text())["questions"]["ever"]["notes"]
    assert any("7 reports answer other versions of the study (version 2)" in note for note in notes)
    assert "7 reports" in capsys.readouterr().out
    assert "7 reports" in (files / "out" / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.attack(18)
def test_fit_that_learnt_nothing_exits_with_4(files, capsys):
    """Fit one report, from which nothing can be learnt."""
    assert run_fit(files, "study.json", reports(ONE, 1)) == 4
    document = json.loads((files / "out" / "posterior.json").read_text())["questions"]["ever"]
    assert document["verdict"]["word"] == document["parameters"]["p"]["verdict"] == NOT_USABLE
    assert [one["part"] for one in document["verdict"]["findings"]] == ["informativeness"]
    assert "): not usable\n  the noise drowns the signal of p" in capsys.readouterr().out
    assert "The noise drowns the signal of p" in (files / "out" / "report.html").read_text()
