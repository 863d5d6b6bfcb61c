"""Plans match known asymptotics, and state how many devices a width needs."""

import json
from math import sqrt

import numpy as np
import pytest

from inference.design.plan import devices_for, plan, prior_width_notes
from inference.design.simulation import is_possible, simulate
from inference.design.truth import completed, parse_truth
from inference.design.widths import possible_truths
from inference.models.sampled_products import moments_seen
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
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
    needed = int(printed.split("about ")[1].split(" devices")[0].replace(",", ""))
    assert needed == pytest.approx((NORMAL_95 / 0.02 / (p - q)) ** 2 * m * (1 - m), rel=0.25)
    assert (out / "ever.png").read_bytes().startswith(b"\x89PNG")


DEVICES = (100, 1000, 10_000)
ROOT_N = np.asarray([1.0, 0.1**0.5, 0.1])


def test_widths_as_wide_as_the_prior_are_noted():
    halves = {"sharp": [0.44, 0.1, 0.03], "drowned": [0.44, 0.43, 0.42], "late": [0.44, 0.2, 0.1]}
    widths = {name: np.asarray(half) for name, half in halves.items()}
    notes = prior_width_notes({"1": widths}, DEVICES, {"sharp": 0.45, "drowned": 0.45, "late": 0.24})
    assert notes == (
        "hopeless at epsilon 1: even 10,000 devices leave drowned about as wide as the prior is, so that the "
        "reports would say nothing of it",
        "at epsilon 1 the width is the prior's own: of sharp up to 100, late up to 1000 devices; a fit would "
        "call that not learnt".replace("1000", "1,000"),
    )
    assert prior_width_notes({"1": widths}, DEVICES, {}) == ()


@pytest.mark.parametrize(("width", "devices"), [(0.2, 2500), (0.05, 40_000), (2.0, 100)])
def test_devices_for_a_width_follow_root_n(width, devices):
    assert devices_for(width, DEVICES, ROOT_N) == pytest.approx(devices)


def test_partly_stated_shares_are_filled_up_to_one():
    question = Study(studies.document(studies.CHOICE)).questions[0]
    drawn = {"p[student]": 0.2, "p[worker]": 0.5, "p[teacher]": 0.3}
    found = completed(question, drawn, parse_truth("p[student]=0.6"))
    assert found == pytest.approx({"p[student]": 0.6, "p[worker]": 0.25, "p[teacher]": 0.15})
    with raises(InputError, "plan.truth_shares"):
        completed(question, drawn, {"p[student]": 0.6, "p[worker]": 0.6})
    with raises(InputError, "plan.unknown_truth_parameter", "p[nurse]"):
        completed(question, drawn, {"p[nurse]": 0.6})


@pytest.mark.slow
def test_reports_of_records_follow_a_possible_truth_as_stated():
    """The mean response of sampled products is the stated one, and no mean square exceeds the bounds'."""
    question = Study(studies.document(studies.PRODUCTS)).questions[0]
    mechanism = mechanism_for(question)
    flat = {"coefficient[age]": 0.0, "coefficient[married]": 0.0, "sd": 0.5}
    for rate in (3.0, 4.0):
        truth = possible_truths(question, {"intercept": rate, **flat}, 1)[0]
        random = np.random.default_rng(2)
        assert is_possible(question, truth, random)
        seen = moments_seen(mechanism, simulate(question, mechanism, truth, 200_000, random))
        assert 3 + 2 * seen.mean[-1] == pytest.approx(rate, abs=5 * 2 * seen.noise[-1])
    with raises(InputError, "plan.unknown_truth_parameter"):
        possible_truths(question, {"mean[age]": 30.0}, 1)


@pytest.mark.parametrize("text", ["", "p=x", "p=0.1,,"])
def test_malformed_truth_is_rejected(text):
    with raises(InputError, "plan.truth_wrong_form"):
        parse_truth(text)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--n", "0,5"], 2, "whole and positive"),
        (["--question", "never"], 3, "--question: must be among ever"),
        (["--epsilon", "0"], 3, "epsilon"),
        (["--truth", "q=1"], 3, "no parameter"),
        (["--truth", "p=1.5"], 3, "between 0 and 1"),
        (["--parameter", "mean"], 3, "'mean' is no parameter of ever, which has p"),
        (["--margin", "0"], 2, "--margin must be a number above 0"),
    ],
)
def test_invalid_option_is_rejected_in_one_line(tmp_path, capsys, options, code, says):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    assert main(["plan", str(tmp_path / "study.json"), "--out", str(tmp_path / "out"), *options]) == code
    error = capsys.readouterr().err
    assert says in error
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "options"),
    [(studies.AGE, ["--truth", "mean=3000,sd=5"])],
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


@pytest.mark.parametrize("command", ["plan", "calibrate"])
def test_simulating_tables_of_holders_is_rejected(tmp_path, command, capsys):
    (tmp_path / "study.json").write_text(Study(studies.document(studies.TABLE, **studies.HOLDER)).to_json())
    assert main([command, str(tmp_path / "study.json"), "--out", str(tmp_path / "out")]) == 3
    assert "power: tables of data holders cannot be simulated" in capsys.readouterr().err
