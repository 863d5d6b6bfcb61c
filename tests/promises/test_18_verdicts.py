"""A wrong, unmixed or uninformative fit is never called usable; a sound one is.

Fits are made by the Gaussian approximation, which compiles little. What the sampler returns is spoilt where a
case is about chains. All results but their pages and figures are made as `ldpkit fit` makes them.
"""

from pathlib import Path
from typing import Any

import pytest

from inference import fit
from inference.results import report
from inference.results.verdict import CARE
from inference.results.verdict import USABLE as USABLE_WORD
from inference.sampling import gaussian_approximation
from ldpkit.cli import main
from tests.kit.modes import fit_without_derivatives
from tests.promises.verdict_cases import BAD, GOOD, NOT_USABLE, USABLE, Case, command_of, spoilt

Patch = pytest.MonkeyPatch
CASES = {**BAD, **GOOD}
SEEDS = range(10)
OF_SEEDS = (
    "choices of which one is nobody's",
    "30 reports that noise drowns",
    "a prior that rules the truth out",
)


def rows(cases: dict[str, Case]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] * cases[name].slow, id=name) for name in cases]


@pytest.fixture(autouse=True)
def without_pages(monkeypatch: Patch) -> None:
    """Pages and figures decide nothing, and take a third of the time. Names of folders are the same ones.

    Derivatives are not compiled, which takes most of the rest.
    """
    fit_without_derivatives(monkeypatch)
    monkeypatch.setattr(report, "save_report", lambda *_arguments, **_options: None)


def code_of(name: str, where: Path, monkeypatch: Patch) -> int:
    """What `ldpkit fit` ends with, where the sampler returns draws as the case spoils them."""
    draw, spoils = gaussian_approximation.draw, CASES[name].spoils
    if spoils is not None:
        monkeypatch.setattr(
            gaussian_approximation, "draw", lambda *arguments, **options: spoils(draw(*arguments, **options))
        )
    return main(command_of(CASES[name], where, name))


def test_twenty_fits_and_more_are_bad_and_as_many_are_sound() -> None:
    assert min(len(BAD), len(GOOD)) >= 20
    assert len(CASES) == len(BAD) + len(GOOD)


@pytest.mark.parametrize("name", rows(BAD))
def test_a_bad_fit_ends_with_its_code(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    assert code_of(name, tmp_path, monkeypatch) == NOT_USABLE


@pytest.mark.parametrize("name", rows(GOOD))
def test_a_sound_fit_is_called_usable(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    assert code_of(name, tmp_path, monkeypatch) == USABLE


@pytest.mark.slow
def test_headline_of_zeros_under_a_normal_law_is_the_mean_as_clipped(tmp_path: Path) -> None:
    """By the law the mean is 2.2, and the answers' mean is 2.87."""
    name = "zeros under a normal law"
    command_of(CASES[name], tmp_path, name)
    found = fit(str(tmp_path / "study.json"), str(tmp_path / "evidence"), method="gaussian_approx")["hours"]
    (headline,) = found.headlines
    low, high = found[headline].interval(0.99)
    assert low < 2.87 < high
    assert found.verdict.overall.word == USABLE_WORD
    assert found.verdict.of("mean").word == CARE


def test_sound_draws_that_are_judged_as_chains_are_called_usable(tmp_path: Path, monkeypatch: Patch) -> None:
    """This shows that the other cases fail because of their changed draws."""
    monkeypatch.setitem(CASES, "a yes or no", spoilt(lambda draws: draws))
    assert code_of("a yes or no", tmp_path, monkeypatch) == USABLE


def test_a_planted_verdict_that_ignores_the_model_is_found(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("inference.predictive.Predictive.findings", lambda _self: ())
    monkeypatch.setattr("inference.fit_model.disagreements", lambda *_arguments: ())
    monkeypatch.setattr("inference.fitting.conformance", lambda *_arguments: {})
    assert code_of("reports that no answers can give", tmp_path, monkeypatch) == USABLE


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_SEEDS)
def test_ten_seeds_give_one_code(name: str, tmp_path: Path) -> None:
    """One file of reports gives one exit code, whatever the seed."""
    command_of(CASES[name], tmp_path, name)
    files = [str(tmp_path / file) for file in ("study.json", "evidence")]
    found = [next(iter(fit(*files, seed=seed, draws=300).values())) for seed in SEEDS]
    assert {bool(posterior.verdict.bad) for posterior in found} == {name in BAD}
