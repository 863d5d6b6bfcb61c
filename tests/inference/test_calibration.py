"""Calibrations of sound studies pass; noise left out of the likelihood, or a wrong epsilon, is found."""

import json
from zlib import crc32

import numpy as np
import pytest

from inference import models
from inference.design import calibration as job
from inference.design.bands import Band, inside_probability, leaves, simultaneous_band
from inference.design.calibration import calibrate, covered, empty_model
from inference.design.simulated_posteriors import Batches
from inference.design.simulation import clipped_share, simulate
from inference.models import family_of
from inference.models.base import Truth
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.statistics import share_is

STUDY = Study(studies.document(studies.YES_NO))
STUDIES = 40


def uniform_ranks(random, count, draws, simulated):
    return random.integers(0, draws + 1, (simulated, count))


def test_the_probability_inside_a_band_is_exact():
    """Two ranks among two draws: counts stay below 2 at r = 0 unless both ranks are 0."""
    band = Band(np.asarray([1 / 3, 2 / 3]), np.asarray([0, 0]), np.asarray([1, 2]))
    assert inside_probability(band, 2) == pytest.approx(1 - 1 / 9)


def test_bands_hold_at_their_stated_rate():
    random = np.random.default_rng(1)
    band = simultaneous_band(50, 19, 0.1)
    alarms = sum(leaves(band, ranks) for ranks in uniform_ranks(random, 50, 19, 2000))
    assert share_is(alarms, 2000, 1 - inside_probability(band, 50))
    assert 0.05 < 1 - inside_probability(band, 50) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [lambda u: u**1.7, lambda u: 0.5 + (u - 0.5) / 1.8, lambda u: np.where(u < 0.5, u**2, 1 - (1 - u) ** 2)],
    ids=["biased", "too wide", "too narrow"],
)
def test_bands_find_wrong_ranks(shape):
    random = np.random.default_rng(2)
    band = simultaneous_band(200, 99, 0.01)
    assert leaves(band, np.floor(100 * shape(random.random(200))).astype(int))


def test_coverage_of_central_intervals():
    ranks = np.arange(100)
    assert (covered(ranks, 0.5), covered(ranks, 0.9)) == (0.5, 0.9)


@pytest.mark.slow
def test_a_sound_study_is_calibrated_on_the_command_line(tmp_path, capsys):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    out = tmp_path / "out"
    arguments = ["calibrate", str(tmp_path / "study.json"), "--out", str(out), "--n", "500"]
    assert main([*arguments, "--studies", str(STUDIES)]) == 0
    assert "calibrated" in capsys.readouterr().out
    found = json.loads((out / "calibration.json").read_text())["questions"]["ever"]
    assert found["ok"]
    assert len(found["parameters"]["p"]["ranks"]) == found["studies"] == STUDIES
    assert (out / "ever.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("walks", "ok", "says"), [(0, True, ""), (8, True, "20%"), (30, False, "75%")])
def test_poorly_mixing_chains_are_reported(monkeypatch, walks, ok, says):
    """A random walk in place of some chains."""

    def stuck(_batches, models, _places):
        random = np.random.default_rng(crc32(b"0 ever"))
        found = random.random((len(models), job.DRAWS))
        slow = np.cumsum(random.normal(size=(walks, job.DRAWS)), axis=1)
        found[:walks] = 0.5 + 0.4 * np.tanh(slow / 5)
        return {"p": found}

    monkeypatch.setattr(Batches, "draws", stuck)
    monkeypatch.setattr(job, "leaves", lambda _band, _ranks: False)
    found = calibrate(STUDY.questions[0], STUDIES, 500)
    assert found.ok == ok
    assert bool(found.notes) == bool(says)
    assert says in "".join(found.notes)
    assert bool(found.reasons) == (not ok)
    assert found.to_document()["parameters"]["p"]["poorly_mixed"] == walks / STUDIES


@pytest.mark.slow
def test_questions_that_cannot_be_simulated_are_left_out(tmp_path, capsys):
    both = Study(studies.document(studies.YES_NO, studies.YES_NO_RECORD))
    (tmp_path / "study.json").write_text(both.to_json())
    arguments = ["calibrate", str(tmp_path / "study.json"), "--out", str(tmp_path / "out"), "--n", "500"]
    assert main([*arguments, "--studies", "20", "--json"]) == 0
    out, said = capsys.readouterr()
    assert said.startswith("left out: chance: perturbed records of a yes/no response")
    written = json.loads((tmp_path / "out" / "calibration.json").read_text())
    assert set(written["questions"]) == {"ever"}
    assert json.loads(out)["result"] == written
    alone = Study(studies.document(studies.YES_NO_RECORD, {**studies.YES_NO_RECORD, "id": "other"}))
    (tmp_path / "study.json").write_text(alone.to_json())
    assert main(arguments) == 3
    assert "no question of this study can be simulated" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("studies_count", "n", "seed", "says"),
    [
        (10, 500, 0, ("calibrate.wrong_study_count", "20")),
        (10**6, 500, 0, ("calibrate.wrong_study_count", "10,000")),
        (20, 0, 0, "plan.wrong_device_count"),
        (20, 10**11, 0, ("plan.wrong_device_count", "100,000,000")),
        (20, 500, -1, "fit.wrong_seed"),
        (20, 500, 1 << 32, "fit.wrong_seed"),
    ],
)
def test_invalid_study_count_size_or_seed_is_rejected(studies_count, n, seed, says):
    with raises(InputError, says):
        calibrate(STUDY.questions[0], studies_count, n, seed)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["20", "2"], ids=["noise left out", "wrong epsilon"])
def test_wrong_likelihood_fails_calibration(monkeypatch, epsilon):
    wrong = Study(studies.document(studies.with_epsilon(studies.YES_NO, epsilon))).questions[0]
    monkeypatch.setattr(models, "mechanism_for", lambda _question: mechanism_for(wrong))
    found = calibrate(STUDY.questions[0], STUDIES, 500)
    assert not found.ok
    assert "ranks of p" in found.reasons[0]


def test_ties_are_broken_at_random():
    truths = [Truth({"x": 1.0}, {}) for _ in range(2000)]
    ranks = job._broken(*job._counted(truths, {"x": np.ones((2000, job.DRAWS))}), 1)["x"]
    assert ranks.mean() == pytest.approx(job.DRAWS / 2, abs=4)


def test_perturbed_records_of_a_yes_no_cannot_be_simulated():
    with raises(InputError, "calibrate.no_summary_of_records"):
        empty_model(Study(studies.document(studies.YES_NO_RECORD)).questions[0])


@pytest.mark.parametrize(
    ("template", "clip", "says"),
    [
        (studies.RECORD, False, "clipped here too"),
        (studies.LINEAR, False, "not here: --device"),
        (studies.LINEAR, True, "clipped here too"),
    ],
    ids=["records", "sums", "sums of a device"],
)
def test_calibration_notes_whether_records_are_clipped(template, clip, says):
    question = Study(studies.document(template)).questions[0]
    wide = Truth(
        {"intercept": 3.0, "coefficient[age]": 0.0, "coefficient[years]": 0.0, "sd": 0.4},
        {**RECORD_SITES, "feature_sd": np.full(2, 0.8)},
    )
    (note,) = job._clipping(question, [wide], 1, clip)
    assert says in note


TRUTHS = {
    "hours": Truth({"rate": 0.25}, {}),
    "age": Truth({"mean": 30.0, "sd": 5.0}, {}),
    "occupation": Truth({"p[student]": 0.2, "p[worker]": 0.5, "p[teacher]": 0.3}, {}),
    "colour": Truth({"p[student]": 0.2, "p[worker]": 0.5, "p[teacher]": 0.3}, {}),
    "ever": Truth({"p": 0.3}, {}),
}
RECORD_SITES = {"feature_mean": np.zeros(2), "feature_sd": np.full(2, 0.2), "feature_correlation": np.eye(2)}
SLOPES = {"coefficient[age]": 0.05, "coefficient[years]": 0.0}
TRUTHS["rating"] = Truth({"intercept": 1.5, **SLOPES, "sd": 0.4}, RECORD_SITES)
TRUTHS["risk"] = Truth({"intercept": -1.5, **SLOPES}, RECORD_SITES)


@pytest.mark.parametrize("name", TRUTHS)
def test_simulated_reports_start_chains_near_the_truth(name):
    """The moment estimate, which every model makes of a summary, finds what was simulated."""
    question = Study(studies.document(*[studies.with_epsilon(one, "16") for one in studies.ALL])).question(
        name
    )
    truth = TRUTHS[name]
    summary = simulate(question, mechanism_for(question), truth, 20_000, np.random.default_rng(1), clip=False)
    assert summary.n == 20_000
    model = models.model_for(question, summary)
    if question.ask == "record":
        moments = np.asarray(model.data["statistics"]) / summary.n
        assert np.diag(moments)[1:3] == pytest.approx([0.04, 0.04], abs=0.02)
        assert moments[1, 3] / model_weight(question) > 0.005
        return
    start = {name: np.asarray(value, float) for name, value in model.initial.items()}
    found = model.parameters(start)
    for parameter, value in truth.parameters.items():
        assert float(found[parameter]) == pytest.approx(value, rel=0.12), parameter


def model_weight(question):
    return mechanism_for(question).scaled_weight


NUMBER_LAWS = {
    "lognormal": ({"log_mean": 1.0, "log_sd": 0.4}, np.exp(1.08)),
    "gamma": ({"shape": 4.0, "mean": 3.0}, 3.0),
    "weibull": ({"shape": 2.0, "scale": 4.0}, 4.0 * 0.886227),
    "beta": ({"a": 2.0, "b": 4.0}, 4.0),
    "poisson": ({"rate": 3.0}, 3.0),
    "geometric": ({"p": 0.25}, 3.0),
}


@pytest.mark.parametrize("name", NUMBER_LAWS)
def test_simulated_numbers_have_the_mean_of_their_law(name):
    parameters, mean = NUMBER_LAWS[name]
    question = Study(studies.document({**studies.NUMBER, "model": {"name": name}})).questions[0]
    answers = family_of(question).simulate(question, Truth(parameters, {}), 40_000, np.random.default_rng(1))
    assert np.mean(answers) == pytest.approx(mean, rel=0.03)


def test_records_beyond_their_norm_are_counted():
    question = Study(studies.document()).question("rating")
    wide = Truth(TRUTHS["rating"].parameters, {**RECORD_SITES, "feature_sd": np.full(2, 2.0)})
    random = np.random.default_rng(1)
    assert clipped_share(question, TRUTHS["rating"], random) < 0.05
    assert clipped_share(question, wide, random) > 0.7


def test_every_model_can_be_simulated_before_any_report():
    for question in Study(studies.document()).questions:
        assert empty_model(question).data["n"] == 0


def test_poor_mixing_is_named_as_possible_cause_of_bad_ranks():
    """In four studies of ten, the one short chain has too few effective draws."""
    band = Band(np.asarray([1 / 3, 2 / 3]), np.asarray([0, 0]), np.asarray([1, 2]))
    ranks = {"mean": np.zeros(20, int)}
    told = [
        job.Calibration("age", "nonparametric", 1000, 1, ranks, band, ("mean",), {"mean": poor}, ()).reasons
        for poor in (0.0, 0.4)
    ]
    assert "mixes poorly" not in told[0][0]
    assert "which mixes poorly in 40% of them" in told[1][0]
