"""Plans match known asymptotics, and state how many devices a width needs."""

import json
import re
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from inference.design.plan import Plan, plan, prior_widths
from inference.design.plan_words import plan_lines
from inference.design.sample_size import devices_for
from inference.design.truth import parse_truth, with_truth
from inference.design.widths import Widths
from inference.models.base import Truth
from inference.results.intervals import rounded_up
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit.cli import build_parser, main
from schemas import Study
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO))
NORMAL_95 = 1.6449


@pytest.mark.slow
def test_width_of_randomised_response_matches_theory(tmp_path, capsys):
    """The sd of a share is sqrt(m(1 − m)/n)/(p − q), m = q + (p − q) share."""
    (tmp_path / "study.json").write_text(STUDY.to_json())
    out = tmp_path / "plan"
    command = ["plan", str(tmp_path / "study.json"), "--n", "20000,2000", "--epsilon", "1"]
    assert main([*command, "--truth", "p=0.3", "--margin", "0.02", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    found = json.loads((out / "plan.json").read_text())["questions"]["ever"]
    assert found["devices"] == [2000, 20000]
    mechanism = mechanism_for(STUDY.questions[0])
    p, q = float(mechanism.p), float(mechanism.q)
    m = q + (p - q) * 0.3
    theory = [NORMAL_95 * sqrt(m * (1 - m) / n) / (p - q) for n in (2000, 20000)]
    assert found["half_widths"]["1"]["p"] == pytest.approx(theory, rel=0.12)
    assert found["at_once"]["1"]["p"] == pytest.approx(theory, rel=0.02)
    needed = int(printed.split("about ")[1].split(" devices")[0].replace(",", ""))
    assert needed == pytest.approx((NORMAL_95 / 0.02 / (p - q)) ** 2 * m * (1 - m), rel=0.25)
    assert (out / "ever.png").read_bytes().startswith(b"\x89PNG")


DEVICES = (100, 1000, 10_000)
ROOT_N = np.asarray([1.0, 0.1**0.5, 0.1])


def test_widths_as_wide_as_the_prior_are_noted():
    halves = np.asarray([[0.44, 0.44, 0.44], [0.1, 0.43, 0.2], [0.03, 0.42, 0.1]])
    widths = Widths(("sharp", "drowned", "late"), halves, {})
    notes = prior_widths({"1": widths}, DEVICES, {"sharp": 0.45, "drowned": 0.45, "late": 0.24})
    assert notes == (
        "hopeless at epsilon 1: even 10,000 devices leave drowned about as wide as the prior is, so that the "
        "reports would say nothing of it",
        "at epsilon 1 the width is the prior's own: of sharp up to 100, late up to 1000 devices; a fit would "
        "call that not learnt".replace("1000", "1,000"),
    )
    assert prior_widths({"1": widths}, DEVICES, {}) == ()


@pytest.mark.slow
def test_hopeless_plan_is_noted():
    question = {**studies.YES_NO, "mechanism": {**studies.YES_NO["mechanism"], "epsilon": "0.001"}}
    found = plan(Study(studies.document(question)), "ever", [100, 1000], ["0.001"])
    assert [note for note in found.notes if note.startswith("hopeless at epsilon 0.001: even 1,000")]


@pytest.mark.parametrize(
    ("width", "devices"), [(0.5, 400), (0.2, 2500), (0.1, 10_000), (0.05, 40_000), (2.0, 100)]
)
def test_devices_for_a_width_follow_root_n(width, devices):
    assert devices_for(width, DEVICES, ROOT_N) == pytest.approx(devices)


def test_devices_for_a_width_never_fall_as_it_narrows():
    widths = np.asarray([1.0, 0.3, 0.31])
    assert devices_for(0.5, DEVICES, widths) < devices_for(0.305, DEVICES, widths)


def test_numbers_of_devices_are_rounded_up():
    assert [rounded_up(x) for x in (1.0, 99.5, 101.0, 12_345.0)] == [1, 100, 110, 13_000]


def test_partly_stated_shares_are_filled_up_to_one():
    question = Study(studies.document(studies.CHOICE)).questions[0]
    drawn = Truth({"p[student]": 0.2, "p[worker]": 0.5, "p[teacher]": 0.3}, {})
    found = with_truth(question, drawn, parse_truth("p[student]=0.6")).parameters
    assert found == pytest.approx({"p[student]": 0.6, "p[worker]": 0.25, "p[teacher]": 0.15})
    with raises(InputError, "plan.truth_shares"):
        with_truth(question, drawn, {"p[student]": 0.6, "p[worker]": 0.6})
    with raises(InputError, "plan.unknown_truth_parameter", "p[nurse]"):
        with_truth(question, drawn, {"p[nurse]": 0.6})


def test_truth_stated_twice_is_rejected():
    """Before, the last of two values was taken silently."""
    with raises(InputError, "plan.truth_given_twice", "0.3", "0.5"):
        parse_truth("p=0.3, p=0.5")


@pytest.mark.parametrize("text", ["", "p", "p=", "=1", "p=x", "p=0.1,,"])
def test_malformed_truth_is_rejected(text):
    with raises(InputError, "plan.truth_wrong_form"):
        parse_truth(text)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--n", "0,5"], 2, "whole and positive"),
        (["--question", "never"], 3, "--question: must be one of ever"),
        (["--epsilon", "0"], 3, "epsilon"),
        (["--truth", "q=1"], 3, "no parameter"),
        (["--truth", "p=1.5"], 3, "between 0 and 1"),
        (["--truth", "p"], 2, "parameter=number"),
        (["--truth", "p=nan"], 2, "parameter=number"),
        (["--parameter", "mean"], 3, "'mean' is no parameter of ever, which has p"),
        (["--margin", "0"], 2, "--margin must be a number above 0"),
        (["--margin", "-1"], 2, "--margin must be a number above 0"),
        (["--seed", "-1"], 2, "the seed must be a whole number from 0 to 4294967295"),
        (["--n", "100000000000"], 2, "at most 100,000,000"),
    ],
)
def test_invalid_option_is_rejected_in_one_line(tmp_path, capsys, options, code, says):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    assert main(["plan", str(tmp_path / "study.json"), "--out", str(tmp_path / "out"), *options]) == code
    error = capsys.readouterr().err
    assert says in error
    assert not (tmp_path / "out").exists()


def test_truth_outside_parameter_range_is_rejected():
    question = Study(studies.document(studies.AGE)).questions[0]
    with raises(InputError, "plan.truth_not_positive", "-5"):
        with_truth(question, Truth({"mean": 30.0, "sd": 5.0}, {}), {"sd": -5.0})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "options"),
    [
        (studies.NUMBER, ["--truth", "rate=0.0001"]),
        (studies.AGE, ["--truth", "mean=3000,sd=5"]),
        (studies.LINEAR, ["--truth", "intercept=4000"]),
    ],
    ids=["exponential", "normal", "regression"],
)
def test_truth_in_units_other_than_bounds_is_rejected(tmp_path, capsys, template, options):
    """Such as seconds for hours: no answer would be within the bounds."""
    (tmp_path / "study.json").write_text(Study(studies.document(template)).to_json())
    command = ["plan", str(tmp_path / "study.json"), "--out", str(tmp_path / "out"), *options]
    assert main(command) == 3
    said = capsys.readouterr().err
    assert "of the answers lie beyond their bounds" in said
    assert "own units?" in said
    assert "simulating" not in said
    assert not (tmp_path / "out").exists()


@pytest.mark.long_runs
@pytest.mark.slow
def test_truth_partly_beyond_bounds_is_noted_with_its_share(tmp_path, capsys, monkeypatch):
    """Half of a normal law around the upper bound. The note needs no fits."""
    monkeypatch.setattr("inference.design.plan.REPEATS", 2)
    (tmp_path / "study.json").write_text(Study(studies.document(studies.AGE)).to_json())
    high = float(studies.AGE["bounds"][1])
    command = ["plan", str(tmp_path / "study.json"), "--n", "500", "--epsilon", "1"]
    for place, wanted in ((high, True), (high / 2, False)):
        out = tmp_path / f"{place:.0f}"
        assert main([*command, "--truth", f"mean={place},sd=1", "--out", str(out)]) == 0
        notes = json.loads((out / "plan.json").read_text())["questions"]["age"]["notes"]
        printed = capsys.readouterr().out
        assert bool(notes) == ("devices clip them, and so does this plan" in printed) == wanted
        if wanted:
            (share,) = re.findall(r"(\d+)%", *notes)
            assert 48 <= int(share) <= 52


def test_parameter_without_question_is_rejected_at_once(tmp_path, capsys):
    """The error comes before any simulation."""
    study = Study(studies.document(studies.YES_NO, studies.AGE))
    (tmp_path / "study.json").write_text(study.to_json())
    command = ["plan", str(tmp_path / "study.json"), "--out", str(tmp_path / "out"), "--parameter", "mean"]
    assert main(command) == 3
    said = capsys.readouterr().err
    assert "choose it from ever, age by --question" in said
    assert "simulating" not in said


def test_all_questions_are_checked_before_simulation(tmp_path, capsys):
    """An epsilon that only the second question cannot have."""
    study = Study(studies.document(studies.YES_NO, studies.AGE))
    (tmp_path / "study.json").write_text(study.to_json())
    monstrous = ["--epsilon", "0.0000001", "--out", str(tmp_path / "out")]
    assert main(["plan", str(tmp_path / "study.json"), *monstrous]) == 3
    assert "simulating" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_question_that_cannot_be_simulated_is_left_out(tmp_path, capsys):
    study = Study(studies.document(studies.YES_NO_RECORD, studies.YES_NO))
    (tmp_path / "study.json").write_text(study.to_json())
    command = ["plan", str(tmp_path / "study.json"), "--n", "500", "--epsilon", "1"]
    assert main([*command, "--out", str(tmp_path / "out"), "--json"]) == 0
    out, said = capsys.readouterr()
    assert said.startswith("left out: chance: perturbed records of a yes/no response")
    written = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert set(written["questions"]) == {"ever"}
    assert json.loads(out)["result"] == written
    assert main([*command, "--question", "chance", "--out", str(tmp_path / "one")]) == 3
    assert "no summary to simulate" in capsys.readouterr().err


def test_commands_in_guide_parse():
    """Every command of docs/analysis.md parses, with its options."""
    page = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text()
    commands = re.findall(r"^ldpkit (.+)$", page, flags=re.M)
    assert len(commands) == 9
    for command in commands:
        build_parser().parse_args(command.split())


@pytest.mark.slow
def test_sample_one_study_has_fewer_answers_per_question():
    """Four times the devices that one question needs, where each device answers one of four."""
    questions = [{**studies.YES_NO, "id": f"q{i}"} for i in range(4)]
    one, alone = (
        Study(studies.document(*questions, sample_one_question=True)),
        Study(studies.document(*questions[:1])),
    )
    found = plan(one, "q0", [4000], ["1"], {"p": 0.3}).half_widths["1"]
    assert found == pytest.approx(plan(alone, "q0", [1000], ["1"], {"p": 0.3}).half_widths["1"])
    with raises(InputError, "plan.too_few_devices", "3 devices", "1 of 4"):
        plan(one, "q0", [3], ["1"])


def test_width_of_fewest_devices_needs_at_most_as_many():
    found = Plan("ever", "bernoulli", 0, (1000, 9000), ("p",), {}, {"1": np.asarray([[0.3], [0.1]])})
    assert plan_lines(found, 0.5, None)[-1].endswith("at most 1,000 devices")
    assert plan_lines(found, 0.2, None)[-1].split(": ")[1].startswith("about ")
