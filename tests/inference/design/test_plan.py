"""Plans match known asymptotics, and state how many devices a width needs."""

import json
import subprocess
import sys
from math import sqrt

import numpy as np
import pytest
from pandas import DataFrame

from inference.design import simulated_posteriors
from inference.design.calibration import prior_truths
from inference.design.notes import prior_width_notes
from inference.design.plan import devices_for, plan
from inference.design.records import RecordPrior
from inference.design.simulation import exact_total, for_devices
from inference.design.truth import completed, stated_values
from inference.models import family_of
from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.core.strips import normal
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.kit.secure_sum import QUESTIONS, build_study

STUDY = Study(studies.document(studies.YES_NO, public=[{"id": "region", "choices": ["north", "south"]}]))
NORMAL_95 = 1.6449


def test_plan_prints_and_writes_widths(tmp_path, capsys):
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
    assert found["half_widths"]["1"]["p"] == pytest.approx(theory, rel=0.02)
    needed = int(printed.split("about ")[1].split(" people")[0].replace(",", ""))
    assert needed == pytest.approx((NORMAL_95 / 0.02 / (p - q)) ** 2 * m * (1 - m), rel=0.05)


@pytest.mark.slow
def test_secure_sum_is_simulated_and_an_interrupted_plan_writes_nothing(tmp_path, monkeypatch):
    """The variance of a share is p(1 − p)/n + σ²/(n − T − 1) · n/n², σ/Δ = 4.2247 at ε = 1, δ = 1e-6."""
    (tmp_path / "study.json").write_text(build_study("ever", devices=1000, max_faulty=0).to_json())
    command = ["plan", f"{tmp_path}/study.json", "--n", "100,1000", "--epsilon", "1", "--truth", "p=0.3"]
    assert main([*command, "--out", f"{tmp_path}/plan"]) == 0
    (entry,) = json.loads((tmp_path / "plan" / "plan.json").read_text())["questions"].values()
    theory = [NORMAL_95 * sqrt(0.21 / n + 4.2247**2 / (n - 1) / n) for n in (100, 1000)]
    assert entry["half_widths"]["1"]["p"] == pytest.approx(theory, rel=0.15)

    def interrupted(*_given, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulated_posteriors, "simulate", interrupted)
    assert main([*command, "--out", f"{tmp_path}/second"]) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "study.json"]


@pytest.mark.processes
def test_plans_by_information_load_no_jax(tmp_path):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    options = (
        ["--question", "ever"],
        ["--difference", "ever=0.2,0.3", "--power", "0.8"],
        ["--formula", "ever ~ region"],
    )
    common = ["plan", f"{tmp_path}/study.json", "--out"]
    commands = [[*common, f"{tmp_path}/{place}", *own] for place, own in enumerate(options)]
    program = f"import sys; from ldpkit.cli import main; assert not any(map(main, {commands}))"
    program += "; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


DEVICES = (100, 1000, 10_000)


def test_widths_as_wide_as_the_prior_are_noted():
    halves = {"sharp": [0.44, 0.1, 0.03], "drowned": [0.44, 0.43, 0.42], "late": [0.44, 0.2, 0.1]}
    widths = {"1": {name: np.asarray(half) for name, half in halves.items()}}
    hopeless, early = prior_width_notes(widths, DEVICES, {"sharp": 0.45, "drowned": 0.45, "late": 0.24})
    assert "leave drowned about as wide" in hopeless
    assert "sharp up to 100, late up to 1,000 people" in early
    assert prior_width_notes(widths, DEVICES, {}) == ()


@pytest.mark.parametrize(("width", "devices"), [(0.2, 2500), (0.05, 40_000), (2.0, 100)])
def test_devices_for_a_width_follow_root_n(width, devices):
    assert devices_for(width, DEVICES, np.asarray([1.0, 0.1**0.5, 0.1])) == pytest.approx(devices)


def test_partly_stated_shares_are_filled_up_to_one():
    question = Study(studies.document(studies.CHOICE)).questions[0]
    drawn = {"p[student]": 0.2, "p[worker]": 0.5, "p[teacher]": 0.3}
    found = completed(question, drawn, stated_values(["p[student]=0.6"]))
    assert found == pytest.approx({"p[student]": 0.6, "p[worker]": 0.25, "p[teacher]": 0.15})
    with raises(InputError, "plan.truth_shares"):
        completed(question, drawn, {"p[student]": 0.6, "p[worker]": 0.6})
    with raises(InputError, "plan.unknown_truth_parameter", "p[nurse]"):
        completed(question, drawn, {"p[nurse]": 0.6})
    for text in ("", "p=x", "p=0.1,,"):
        with raises(InputError, "plan.truth_wrong_form"):
            stated_values([text])


def test_truths_of_records_keep_the_stated_line_within_the_bounds():
    question = Study(studies.document(studies.PRODUCTS)).questions[0]
    prior, line = RecordPrior(question), {"intercept": 3.0, "coefficient[age]": 0.0, "sd": 0.5}
    points = prior.truths(1, line)
    for point in points:
        found = prior.values(point)
        assert {name: found[name] for name in line} == pytest.approx(line, abs=1e-12)
        assert np.diag(prior.moments(point)).max() <= 1
    assert np.std([prior.values(point)["coefficient[married]"] for point in points]) > 0
    with raises(InputError, "plan.records_beyond_bounds"):
        prior.truths(1, {"sd": 100.0})
    with raises(InputError, "plan.unknown_truth_parameter"):
        plan(Study(studies.document(studies.PRODUCTS)), "salary", truth={"mean[age]": 30.0})


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--n", "0,5"], 2, "whole and positive"),
        (["--question", "never"], 3, "--question: must be among ever"),
        (["--truth", "q=1"], 3, "--truth is for one question"),
        (["--question", "ever", "--truth", "q=1"], 3, "no parameter"),
        (["--question", "ever", "--truth", "p=1.5"], 3, "between 0 and 1"),
        (["--question", "age", "--truth", "mean=3000,sd=5"], 3, "own units?"),
        (["--difference", "ever=0.2"], 2, "NAME=A,B"),
        (["--difference", "ever=0.2,0.2"], 2, "differ"),
        (["--difference", "evr=0.2,0.3"], 3, "no question"),
        (["--difference", "ever=0.2,0.3", "--question", "ever"], 2, "--question is not for --difference"),
        (["--difference", "ever=0.2,0.3", "--formula", "ever ~ 1"], 2, "--difference is not for --formula"),
        (["--formula", "ever ~ 1", "--power", "0.8"], 2, "--power is of an effect"),
    ],
)
def test_invalid_option_is_rejected_in_one_line(tmp_path, capsys, options, code, says):
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO, studies.AGE)))
    assert main(["plan", str(tmp_path / "study.json"), "--out", str(tmp_path / "out"), *options]) == code
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_sample_one_study_has_fewer_answers_per_question():
    """Four times the devices that one question needs, where each device answers one of four."""
    questions = [{**studies.YES_NO, "id": f"q{i}"} for i in range(4)]
    one = Study(studies.document(*questions, sample_one_question=True))
    alone = Study(studies.document(*questions[:1]))
    found = plan(one, "q0", [4000], ["1"], {"p": 0.3}).half_widths["1"]["p"]
    assert found == pytest.approx(plan(alone, "q0", [1000], ["1"], {"p": 0.3}).half_widths["1"]["p"])
    with raises(InputError, "plan.too_few_devices", "3 devices", "1 of 4"):
        plan(one, "q0", [3], ["1"])


@pytest.mark.parametrize("command", ["plan", "calibrate"])
def test_simulating_tables_of_holders_is_rejected(tmp_path, command, capsys):
    (tmp_path / "study.json").write_text(Study(studies.document(studies.TABLE, **studies.HOLDER)).to_json())
    assert main([command, str(tmp_path / "study.json"), "--out", str(tmp_path / "out")]) == 3
    assert "power: tables of data holders cannot be simulated" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_simulated_total_matches_sum_of_devices(name):
    """To half a grid unit a person, a millionth of one device's noise."""
    count, zeros = 200, NotForRealAnswers(bytes)
    question = build_study(name).questions[0]
    mechanism, (truth,) = mechanism_for(question), prior_truths(question, 1, 5)
    answers = family_of(question).simulate(question, truth, count, np.random.default_rng(5))
    noise = np.asarray(normal(mechanism.size, zeros))
    people = answers.tolist() if not isinstance(answers, dict) else DataFrame(answers).to_dict("records")
    words = b"".join(mechanism.noisy_vector(mechanism.quantise(answer), zeros) for answer in people)
    devices = (np.frombuffer(words, "<i8").reshape(count, -1) - noise).sum(axis=0)
    found = exact_total(question, mechanism, answers, clip=True)
    # Fields are rounded to 2**-20 besides; a histogram may put one person on an edge elsewhere.
    assert found == pytest.approx(devices, abs=count * (0.5 + 4 * mechanism.grid * 2.0**-20))


def test_a_study_of_other_size_keeps_its_share_of_drop_outs():
    question = build_study("ever", devices=20, max_faulty=5).questions[0]
    protocol = for_devices(question, 1000).protocol
    assert (protocol.devices, protocol.max_faulty, question.protocol.devices) == (1000, 250, 20)
    assert for_devices(question, 3).protocol.max_faulty == 0
    with raises(InputError, "plan.too_few_for_secure_sum", "3"):
        for_devices(question, 2)
