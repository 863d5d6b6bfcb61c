"""Widths by information match textbooks and fits, and load no JAX; power of differences."""

import re
import subprocess
import sys
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from inference.design import information, widths
from inference.design.difference import plan_difference
from inference.design.information import HALF, Prior, fewest, half_widths, law_of_reports, share_covariance
from inference.design.plan import plan
from ldp_client import mechanism_for
from ldpkit.cli import main
from schemas import Study
from tests import studies

GAUSSIAN = {"name": "gaussian", "epsilon": "1", "delta": "1e-6"}
HOURS = {"id": "hours", "ask": "number", "text": "?", "bounds": ["0", "24"], "model": {"name": "normal"}}
NORMAL = {**HOURS, "mechanism": {"name": "laplace", "epsilon": "1"}}
STUDY = Study(studies.document(studies.YES_NO, studies.CHOICE, NORMAL))


def question_of(question):
    return Study(studies.document(question)).questions[0]


def choice_of(labels, mechanism, epsilon="1", **more):
    noise = {"name": mechanism, "epsilon": epsilon}
    return {**studies.CHOICE, "choices": list(labels), "mechanism": noise, **more}


def test_width_for_normal_law_matches_textbook():
    """Nothing is beyond the bounds: the variances of answers and noise add up."""
    prior = {"mean": {"distribution": "normal", "loc": "12", "scale": "50"}}
    question = question_of({**HOURS, "mechanism": GAUSSIAN, "model": {"name": "normal", "prior": prior}})
    number = mechanism_for(question)
    noise = 24 * number.scale / number.levels
    found = half_widths(question, [{"mean": 12.0, "sd": 2.0}], [10**8], Prior(question))
    whole = sqrt(4 + noise**2)
    assert found["mean"] == pytest.approx([HALF * whole / 1e4], rel=0.01)
    # Of a normal's variance v an estimate has the variance 2 v² / n, and sd moves it by 2 sd.
    assert found["sd"] == pytest.approx([HALF * sqrt(2) * whole**2 / 4 / 1e4], rel=0.03)


@pytest.mark.filterwarnings("error")
def test_counts_beyond_bounds_are_clipped_to_bounds():
    """Every whole number of a Poisson law has its exact probability."""
    question = question_of({**NORMAL, "bounds": ["5", "29"], "model": {"name": "poisson"}})
    masses = information._masses(question, ["rate"], np.asarray([[9.0]]))[0]
    exact = stats.poisson.pmf(np.arange(5, 30), 9.0)
    exact[0], exact[-1] = stats.poisson.cdf(5, 9.0), stats.poisson.sf(28, 9.0)
    assert masses == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("mechanism", ["randomized_response", "oue", "subset_selection", "olh"])
def test_variance_of_share_matches_law_of_reports(mechanism):
    """For unary reports it is smaller than from each bit alone, as shares add up to 1."""
    own = mechanism_for(question_of({**studies.CHOICE, "mechanism": {"name": mechanism, "epsilon": "1"}}))
    p, q, shares = float(own.p), float(own.q), np.asarray([0.2, 0.5, 0.3])
    supported = q + (p - q) * shares
    alone = supported * (1 - supported) / (p - q) ** 2
    found = np.diag(share_covariance(own, shares))
    if mechanism in ("randomized_response", "subset_selection"):
        assert found == pytest.approx(alone, rel=1e-9)
    else:
        assert (found < alone).all()
        assert (found > 0.6 * alone).all()


def test_covariance_of_many_unary_bits_is_that_of_their_patterns(monkeypatch):
    """The formula for too many choices agrees with the sum over all patterns, within a few percent."""
    own = mechanism_for(question_of(choice_of("abcdefgh", "oue", "0.5")))
    shares = np.asarray([0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02])
    exact = share_covariance(own, shares)
    monkeypatch.setattr(information, "law_of_reports", lambda _mechanism: None)
    assert np.diag(share_covariance(own, shares)) == pytest.approx(np.diag(exact), rel=0.05)
    assert law_of_reports(mechanism_for(question_of(choice_of(map(str, range(20)), "oue")))) is None


@pytest.mark.parametrize(
    ("epsilon", "share", "n"), [("1", 0.003, 5000), ("3", 0.01, 2000), ("1", 0.05, 1000), ("0.5", 0.5, 500)]
)
def test_width_of_a_share_is_the_median_of_its_exact_posteriors(epsilon, share, n):
    """Near 0 too, where a posterior is cut off: a normal's width would be 29 to 63 % too wide."""
    question = question_of(studies.with_epsilon(studies.YES_NO, epsilon))
    own = mechanism_for(question)
    p, q = float(own.p), float(own.q)
    grid = (np.arange(4000) + 0.5) / 4000
    support = q + (p - q) * grid
    exact = []
    for yes in np.random.default_rng(1).binomial(n, q + (p - q) * share, 400):
        log_density = yes * np.log(support) + (n - yes) * np.log1p(-support)
        below = np.cumsum(np.exp(log_density - log_density.max()))
        exact.append(np.diff(np.interp([0.05 * below[-1], 0.95 * below[-1]], below, grid))[0] / 2)
    found = half_widths(question, [{"p": share}], [n], Prior(question))["p"]
    assert found == pytest.approx([np.median(exact)], rel=0.05)


TWENTY = [f"c{place}" for place in range(20)]
DESIGNS = {
    "near 0": (studies.YES_NO, {"p": 0.02}, 2000),
    "randomized response": (
        choice_of("abc", "randomized_response"),
        {"p[a]": 0.1, "p[b]": 0.5, "p[c]": 0.4},
        3000,
    ),
    "oue": (choice_of("abc", "oue"), {"p[a]": 0.1, "p[b]": 0.7, "p[c]": 0.2}, 3000),
    "subset selection": (
        choice_of("abcd", "subset_selection"),
        {"p[a]": 0.4, "p[b]": 0.3, "p[c]": 0.2, "p[d]": 0.1},
        5000,
    ),
    "hadamard": (choice_of("abc", "hadamard", "2"), {"p[a]": 0.2, "p[b]": 0.5, "p[c]": 0.3}, 3000),
    "many choices": (
        choice_of(TWENTY, "oue"),
        dict.fromkeys([f"p[{label}]" for label in TWENTY], 0.05),
        20_000,
    ),
    "refusal": (
        choice_of("abc", "oue", "2", refusal=True),
        {"p[a]": 0.1, "p[b]": 0.5, "p[c]": 0.4, "refused": 0.1},
        5000,
    ),
    "normal": (NORMAL, {"mean": 8.0, "sd": 3.0}, 50_000),
    "gamma": (
        {**NORMAL, "mechanism": {"name": "laplace", "epsilon": "4"}, "model": {"name": "gamma"}},
        {"shape": 3.0, "mean": 6.0},
        50_000,
    ),
    "poisson": ({**NORMAL, "model": {"name": "poisson"}}, {"rate": 4.0}, 20_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_widths_are_those_of_fits(design, monkeypatch):
    """Within a tenth of the median of fits of studies that are simulated at the same truth."""
    question, truth, n = DESIGNS[design]
    study = Study(studies.document(question))
    monkeypatch.setattr(widths, "REPEATS", 16)
    epsilon = [str(question["mechanism"]["epsilon"])]
    planned, fitted = (
        plan(study, question["id"], [n], epsilon, truth, simulated=simulated) for simulated in (False, True)
    )
    ratios = [
        planned.half_widths[epsilon[0]][0, planned.parameters.index(name)]
        / fitted.half_widths[epsilon[0]][0, fitted.parameters.index(name)]
        for name in truth
    ]
    # Fitted medians of twenty shares differ by chance: their average is compared.
    ratios = [np.mean(ratios)] if len(ratios) > 4 else ratios
    assert ratios == pytest.approx([1] * len(ratios), abs=0.1)


@pytest.mark.parametrize(
    "command", [["--question", "ever", "--at-once"], ["--difference", "ever=0.2,0.3", "--power", "0.8"]]
)
def test_plans_by_information_load_no_jax(tmp_path, command):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    whole = ["plan", f"{tmp_path}/study.json", *command, "--out", f"{tmp_path}/plan"]
    program = (
        f"import sys; from ldpkit.cli import main; assert not main({whole}); assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_fewest_people_are_found_or_too_many():
    assert fewest(lambda n: n >= 12_345) == 12_345
    assert fewest(lambda _n: False) is None


@pytest.mark.slow
def test_an_interrupted_plan_writes_nothing(tmp_path, monkeypatch):
    (tmp_path / "study.json").write_text(STUDY.to_json())

    def interrupted(*_given, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(widths, "simulate", interrupted)
    command = ["plan", f"{tmp_path}/study.json", "--question", "ever", "--out", f"{tmp_path}/plan"]
    assert main([*command, "--epsilon", "0.5,1", "--n", "1000"]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_power_of_difference_matches_textbook():
    found = plan_difference(STUDY, "ever", "p", (0.2, 0.3), [4000], ["1"], share=0.25, power=0.8)
    own = mechanism_for(STUDY.question("ever"))
    p, q = float(own.p), float(own.q)
    told = [q + (p - q) * share for share in (0.2, 0.3)]
    each = [one * (1 - one) / (p - q) ** 2 for one in told]

    def sd(n):
        return sqrt(each[0] / (0.25 * n) + each[1] / (0.75 * n))

    (epsilon,) = found.half_widths
    assert found.half_widths[epsilon] == pytest.approx([HALF * sd(4000)], rel=0.02)
    assert found.power[epsilon] == pytest.approx([stats.norm.cdf(0.1 / sd(4000) - HALF)], abs=0.02)
    wanted = (HALF + stats.norm.ppf(0.8)) ** 2 * sd(1) ** 2 / 0.01
    assert found.needed[epsilon] == pytest.approx(wanted, rel=0.03)


def test_plan_does_not_overwrite_its_own_study(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plan" / "study.json"
    path.parent.mkdir()
    path.write_text(STUDY.to_json())
    (path.parent / "plan.json").write_text("{}")
    for study, out in ((str(path), "plan"), (str(path), "/"), ("plan/study.json", "./plan/../plan")):
        assert main(["plan", study, "--at-once", "--out", out]) == 3
        assert re.search("is there already|is not a new folder", capsys.readouterr().err)
    assert path.read_text() == STUDY.to_json()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--difference", "ever=0.2"], 2, "NAME=A,B"),
        (["--difference", "ever=0.2,0.2"], 2, "differ"),
        (["--difference", "ever=0.2,1.2"], 3, "between 0 and 1"),
        (["--difference", "evr=0.2,0.3"], 3, "no question"),
        (["--difference", "ever=0.2,0.3", "--margin", "0.1"], 2, "--margin is not for --difference"),
    ],
)
def test_invalid_options_are_rejected_and_nothing_is_written(tmp_path, capsys, options, code, said):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    assert main(["plan", f"{tmp_path}/study.json", *options, "--out", f"{tmp_path}/plan"]) == code
    assert said in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["study.json"]
