"""Calibrations of sound studies pass; noise left out of the likelihood, or a wrong epsilon, is found."""

import json
from zlib import crc32

import numpy as np
import pytest

from inference import models
from inference.design import calibration
from inference.design.bands import inside_probability, leaves, simultaneous_band
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


def test_bands_hold_at_their_stated_rate():
    random = np.random.default_rng(1)
    band = simultaneous_band(50, 19, 0.1)
    alarms = sum(leaves(band, ranks) for ranks in random.integers(0, 20, (2000, 50)))
    assert share_is(alarms, 2000, 1 - inside_probability(band, 50))
    assert 0.05 < 1 - inside_probability(band, 50) <= 0.1


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


@pytest.mark.slow
@pytest.mark.parametrize(("walks", "ok", "says"), [(8, True, "20%"), (30, False, "75%")])
def test_poorly_mixing_chains_are_reported(monkeypatch, walks, ok, says):
    def stuck(question, cells, *_options, **_clip):
        random = np.random.default_rng(crc32(b"0 ever"))
        found = random.random((len(cells), calibration.DRAWS))
        slow = np.cumsum(random.normal(size=(walks, calibration.DRAWS)), axis=1)
        found[:walks] = 0.5 + 0.4 * np.tanh(slow / 5)
        return {"p": found}, calibration.empty_model(question)

    monkeypatch.setattr(calibration, "fit_studies", stuck)
    monkeypatch.setattr(calibration, "leaves", lambda _band, _ranks: False)
    found = calibration.calibrate(STUDY.questions[0], STUDIES, 500)
    assert found.ok == ok
    assert says in "".join(found.notes)
    assert found.to_document()["parameters"]["p"]["poorly_mixed"] == walks / STUDIES


@pytest.mark.parametrize(
    ("studies_count", "n", "seed", "says"),
    [
        (10, 500, 0, ("calibrate.wrong_study_count", "20")),
        (20, 0, 0, "plan.wrong_device_count"),
        (20, 500, -1, "fit.wrong_seed"),
    ],
)
def test_invalid_study_count_size_or_seed_is_rejected(studies_count, n, seed, says):
    with raises(InputError, says):
        calibration.calibrate(STUDY.questions[0], studies_count, n, seed)


@pytest.mark.slow
def test_wrong_likelihood_fails_calibration(monkeypatch):
    wrong = studies.question_of(studies.with_epsilon(studies.YES_NO, "2"))
    monkeypatch.setattr(models, "mechanism_for", lambda _question: mechanism_for(wrong))
    found = calibration.calibrate(STUDY.questions[0], STUDIES, 500)
    assert not found.ok
    assert "ranks of p" in found.reasons[0]


@pytest.mark.parametrize(("clip", "says"), [(False, "not here: --device"), (True, "clipped here too")])
def test_calibration_notes_whether_records_are_clipped(clip, says):
    line = {"intercept": 3.0, "coefficient[age]": 0.0, "coefficient[years]": 0.0, "sd": 0.4}
    sites = {"feature_mean": np.zeros(2), "feature_sd": np.full(2, 0.8), "feature_correlation": np.eye(2)}
    (note,) = calibration._clipping(studies.question_of(studies.LINEAR), [Truth(line, sites)], 1, clip)
    assert says in note
