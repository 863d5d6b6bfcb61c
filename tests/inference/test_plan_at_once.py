"""Plans by formulas: widths, power of differences, one budget over questions; and plans that go on."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from inference.design import widths
from inference.design.at_once import HALF, _masses, half_widths, share_variances
from inference.design.difference import plan_difference
from inference.models import family_of
from inference.models.base import Truth
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


@pytest.mark.slow
def test_width_for_normal_law_matches_textbook():
    """Nothing is beyond the bounds: the variances of answers and noise add up."""
    question = question_of({**HOURS, "mechanism": GAUSSIAN})
    number = mechanism_for(question)
    noise = 24 * number.scale / number.levels
    prior = {"mean": 50.0, "sd": 50.0}
    found = half_widths(question, [Truth({"mean": 12.0, "sd": 2.0}, {})], [10**8], prior)
    whole = sqrt(4 + noise**2)
    assert found["mean"] == pytest.approx([HALF * whole / 1e4], rel=0.01)
    # Of a normal's variance v an estimate has the variance 2 v² / n, and sd moves it by 2 sd.
    assert found["sd"] == pytest.approx([HALF * sqrt(2) * whole**2 / 4 / 1e4], rel=0.03)


@pytest.mark.filterwarnings("error")
def test_counts_beyond_bounds_are_clipped_to_bounds():
    """Every whole number of a Poisson law has its exact probability."""
    question = question_of({**NORMAL, "bounds": ["5", "29"], "model": {"name": "poisson"}})
    masses = _masses(family_of(question), question, ["rate"], np.asarray([[9.0]]))[0]
    exact = stats.poisson.pmf(np.arange(5, 30), 9.0)
    exact[0], exact[-1] = stats.poisson.cdf(5, 9.0), stats.poisson.sf(28, 9.0)
    assert masses == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("mechanism", ["oue", "subset_selection", "olh"])
def test_variance_of_share_matches_law_of_reports(mechanism):
    """For unary reports it is smaller than from each bit alone, as shares add up to 1."""
    question = question_of({**studies.CHOICE, "mechanism": {"name": mechanism, "epsilon": "1"}})
    own, truth = mechanism_for(question), {"p[student]": 0.2, "p[worker]": 0.5, "p[teacher]": 0.3}
    p, q, shares = float(own.p), float(own.q), np.asarray(list(truth.values()))
    supported = q + (p - q) * shares
    alone = supported * (1 - supported) / (p - q) ** 2
    found = np.asarray(list(share_variances(question, own, truth).values()))
    if mechanism in ("randomized_response", "subset_selection"):
        assert found == pytest.approx(alone, rel=1e-9)
    else:
        assert (found < alone).all()
        assert (found > 0.6 * alone).all()


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
        assert "is not a new folder" in capsys.readouterr().err
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
