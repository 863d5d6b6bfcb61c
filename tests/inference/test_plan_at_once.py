"""Plans by formulas: widths, power of differences, one budget over questions; and plans that go on."""

import json
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from inference.design import widths
from inference.design.at_once import HALF, _masses, half_widths, share_variances
from inference.design.difference import plan_difference
from inference.design.plan import plan
from inference.models import family_of
from inference.models.base import Truth
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises

GAUSSIAN = {"name": "gaussian", "epsilon": "1", "delta": "1e-6"}
HOURS = {"id": "hours", "ask": "number", "text": "?", "bounds": ["0", "24"], "model": {"name": "normal"}}
NORMAL = {**HOURS, "mechanism": {"name": "laplace", "epsilon": "1"}}
STUDY = Study(studies.document(studies.YES_NO, studies.CHOICE, NORMAL))


def question_of(question):
    return Study(studies.document(question)).questions[0]


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


@pytest.mark.parametrize("mechanism", ["oue", "randomized_response", "subset_selection", "olh", "sue"])
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


def test_variance_of_share_among_answers_matches_simulation():
    question = question_of({**studies.YES_NO, "refusal": True})
    own, truth = mechanism_for(question), {"p": 0.3, "refused": 0.2}
    p, q = float(own.p), float(own.q)
    random, shares = np.random.default_rng(1), np.asarray([0.56, 0.24, 0.2])
    counts = random.multinomial(200_000, q + (p - q) * shares, 4_000) / 200_000
    raw = (counts - q) / (p - q)
    drawn = 200_000 * np.var(raw[:, 1] / (1 - raw[:, 2]))
    found = share_variances(question, own, truth)
    assert found["p"] == pytest.approx(drawn, rel=0.1)
    assert found["refused"] == pytest.approx(200_000 * np.var(raw[:, 2]), rel=0.1)


@pytest.mark.slow
def test_a_plan_at_once_simulates_nothing(monkeypatch):
    monkeypatch.setattr("inference.design.simulated_posteriors.Batches", None)
    found = plan(STUDY, "ever", [1000, 100_000], ["1"], {"p": 0.3}, simulated=False)
    assert found.to_document()["method"].startswith("half the 90 % interval from a formula")
    ratio = found.half_widths["1"][:, 0]
    assert ratio[0] / ratio[1] == pytest.approx(10, rel=0.02)
    assert not found.notes
    few = plan(STUDY, "hours", [1000, 100_000], ["1"], {"mean": 7, "sd": 2}, simulated=False)
    assert [
        one
        for one in few.notes
        if one.startswith("at epsilon 1 up to 1,000 devices posteriors are not normal")
    ]
    linear = Study(studies.document(studies.LINEAR))
    with raises(InputError, "plan.no_formula"):
        plan(linear, linear.questions[0].id, [1000], simulated=False)


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
    path = tmp_path / "plan" / "set-study.json"
    path.parent.mkdir()
    path.write_text(STUDY.to_json())
    (path.parent / "plan.json").write_text("{}")
    for study, out in ((str(path), "plan"), (str(path), "/"), ("plan/set-study.json", "./plan/../plan")):
        assert main(["plan", study, "--at-once", "--out", out]) == 3
        assert "is not a new folder" in capsys.readouterr().err
    assert path.read_text() == STUDY.to_json()


@pytest.mark.parametrize(
    ("low", "high", "devices", "low_end", "high_end"), [(0.1, 0.9, 10, 0, 0.06), (0.1, 0.6, 140, 0.84, 0.92)]
)
def test_few_reports_find_little_even_of_large_differences(low, high, devices, low_end, high_end):
    """By simulation 2.5 % and 88 %: the prior draws estimates of few reports together."""
    found = plan_difference(STUDY, "ever", "p", (low, high), [devices], ["1"])
    (power,) = found.power.values()
    assert low_end <= power[0] <= high_end
    assert ["the results here are rough" in note for note in found.notes] == [True]


REFUSING = Study(studies.document({**studies.YES_NO, "refusal": True}, studies.CHOICE, NORMAL))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "unstated", "stated"),
    [
        (("ever", "p", (0.2, 0.3)), "refused", {"refused": 0.1}),
        (("hours", "mean", (7.0, 8.0)), "sd", {"sd": 2.0}),
    ],
)
def test_difference_requires_stated_other_parameters(asked, unstated, stated):
    """With ten draws of them, plans needed 8,000 or 45,000 devices depending on --seed."""
    with raises(InputError, "plan.truth_missing", f"--truth {unstated}="):
        plan_difference(REFUSING, *asked, [10_000], ["1"])
    found = [
        plan_difference(REFUSING, *asked, [10_000], ["1"], stated, seed=seed).power["1"] for seed in (0, 2)
    ]
    assert found[0] == pytest.approx(found[1], abs=0.01)


@pytest.mark.slow
def test_unstated_choices_are_assumed_equal_and_printed(tmp_path, capsys):
    name, *rest = (f"p[{label}]" for label in studies.CHOICE["choices"])
    asked = (REFUSING, studies.CHOICE["id"], name, (0.2, 0.3), [10_000], ["1"])
    found = plan_difference(*asked)
    (said,) = found.assumed
    assert said.startswith(", ".join(rest))
    other = plan_difference(*asked, seed=2)
    assert found.half_widths["1"] == pytest.approx(other.half_widths["1"], rel=0.01)
    assert plan_difference(*asked, truth={rest[0]: 0.1}).to_document()["assumed"] == []
    (tmp_path / "study.json").write_text(REFUSING.to_json())
    command = ["plan", f"{tmp_path}/study.json", "--out", f"{tmp_path}/plan", "--n", "1000"]
    assert main([*command, "--difference", f"{name.replace('p[', asked[1] + '[')}=0.2,0.3"]) == 0
    assert f"assumed: {said}" in capsys.readouterr().out


@pytest.mark.parametrize(("truth", "drawn"), [("mean=7", ["sd"]), ("mean=7,sd=2", [])])
def test_plan_prints_parameters_drawn_from_prior(tmp_path, capsys, truth, drawn):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    command = ["plan", f"{tmp_path}/study.json", "--at-once", "--question", "hours", "--truth", truth]
    assert main([*command, "--n", "1000", "--epsilon", "1", "--out", f"{tmp_path}/plan"]) == 0
    assert ("not stated, sd: as the prior drew it 10 times" in capsys.readouterr().out) == bool(drawn)
    assert json.loads((tmp_path / "plan/plan.json").read_text())["questions"]["hours"]["drawn"] == drawn


def test_large_plan_has_no_note_and_mean_beyond_bounds_is_rejected():
    assert plan_difference(STUDY, "ever", "p", (0.2, 0.3), [40_000], ["1"]).notes == ()
    number = Study(studies.document({**studies.AGE, "model": {"name": "normal"}}))
    with raises(InputError, "plan.mean_beyond_bounds", "age", "50", "15", "45"):
        plan_difference(number, "age", "mean", (20.0, 50.0), [1000])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--difference", "ever=0.2"], 2, "NAME=A,B"),
        (["--difference", "ever=0.2,nan"], 2, "NAME=A,B"),
        (["--difference", "ever=0.2,0.2"], 2, "differ"),
        (["--difference", "ever=0.2,1.2"], 3, "between 0 and 1"),
        (["--difference", "evr=0.2,0.3"], 3, "no question"),
        (["--difference", "occupation=0.2,0.3"], 2, "occupation[student]=0.1,0.2"),
        (["--difference", "ever=0.2,0.3", "--groups", "1"], 2, "between 0 and 1"),
        (["--difference", "ever=0.2,0.3", "--shuffled", "0.1"], 2, "ask for one only"),
        (["--difference", "ever=0.2,0.3", "--margin", "0.1"], 2, "--margin is not for --difference"),
        (["--shuffled", "0.1"], 2, "one number of --n"),
        (["--shuffled", "0.1", "--n", "100", "--margin", "1"], 2, "--margin is not for --shuffled"),
        (["--shuffled", "no", "--n", "100"], 3, "must be a decimal"),
        (["--shuffled", "0", "--n", "100"], 3, "must be above 0"),
        (["--shuffled", "0.001", "--n", "10"], 3, "no device's epsilon of 0.01 or more"),
        (["--delta", "1e-6"], 2, "it is for --shuffled"),
        (["--groups", "0.5"], 2, "it is for --difference"),
    ],
)
def test_invalid_options_are_rejected_and_nothing_is_written(tmp_path, capsys, options, code, said):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    assert main(["plan", f"{tmp_path}/study.json", *options, "--out", f"{tmp_path}/plan"]) == code
    assert said in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["study.json"]


def test_choice_of_two_by_sets_uses_difference_of_bits():
    """The difference of the two bits gives 2.34; one bit alone would give 4.43."""
    bits = {"name": "oue", "epsilon": "1"}
    asked = {**studies.CHOICE, "choices": ["a", "b"], "mechanism": bits}
    (question,) = Study(studies.document(asked)).questions
    known = share_variances(question, mechanism_for(question), {"p[a]": 0.5, "p[b]": 0.5})
    assert known["p[a]"] == pytest.approx(2.34, abs=0.01)
