"""Peaks of likelihoods and their curvature match a plain likelihood, a simulation and a published survey."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import model_of
from inference.analyses.assembling import assemble
from inference.analyses.peaks import Peak, peak_of
from inference.analyses.survey import load_survey
from inference.analyses.table import Table, table_of
from tests.inference.analyses.simulated import MATRIX, YES_NO, design
from tests.kit.channels import known_channel

pytestmark = [pytest.mark.slow, pytest.mark.programs]


def peak(table: Table, formula: str) -> Peak:
    """The likelihood's peak."""
    analysis = assemble(table, formula, "flat")
    found = peak_of(analysis, model_of(analysis))
    assert found is not None
    return found


def test_mode_and_its_curvature_match_plain_likelihood():
    random, n = np.random.default_rng(1), 1000
    age, west = random.normal(size=n), random.random(n) < 0.5
    chance = 1 / (1 + np.exp(0.5 - 0.8 * age - west))
    answers = (random.random(n) < chance).astype(int)
    reports = (random.random(n) < np.asarray(YES_NO)[answers, 1]).astype(int)
    frame = pd.DataFrame({"age": age, "region": np.where(west, "west", "east")})
    table = table_of(frame, [known_channel("ever", ["no", "yes"], reports, YES_NO)])
    found = peak(table, "ever ~ age + region")
    columns = np.column_stack([np.ones(n), age, west])

    def log_likelihood(beta):
        share = 1 / (1 + np.exp(-columns @ beta))
        yes = 0.2 * (1 - share) + 0.7 * share
        return float(np.sum(np.where(reports == 1, np.log(yes), np.log1p(-yes))))

    beta = np.asarray(list(found.values.values()))
    assert np.all(np.abs(beta - [-0.5, 0.8, 1.0]) < 5 * np.asarray(list(found.sds.values())))
    assert found.log_likelihood == pytest.approx(log_likelihood(beta), abs=1e-8)
    unit = np.eye(3) * 1e-4
    slope = [(log_likelihood(beta + one) - log_likelihood(beta - one)) / 2e-4 for one in unit]
    # In sds of the estimate: nothing is left to climb.
    assert np.all(np.abs(np.asarray(slope) * list(found.sds.values())) < 1e-4)
    curvature = [
        [
            (log_likelihood(beta + a + b) - log_likelihood(beta + a - b))
            - (log_likelihood(beta - a + b) - log_likelihood(beta - a - b))
            for a in unit * 10
        ]
        for b in unit * 10
    ]
    information = -np.asarray(curvature) / (4 * 1e-3**2)
    assert list(found.sds.values()) == pytest.approx(np.sqrt(np.diag(np.linalg.inv(information))), rel=1e-4)


FOLDER = Path(os.environ.get("LDPKIT_DATA", Path(__file__).parents[4] / "shared" / "golden"))
NIGERIA = FOLDER / "rr" / "nigeria.csv"
COLUMNS = "cov.asset.index + cov.married + I(cov.age/10) + I((cov.age/10)**2) + cov.education + cov.female"


@pytest.mark.skipif(not NIGERIA.exists(), reason="the survey's data are not here")
def test_nigeria_survey_matches_published_estimates(tmp_path):
    """The mode, the log-likelihood and the sds from the observed information, as published."""
    (tmp_path / "d.json").write_text(design(**{"rr.q1": {"matrix": MATRIX, "reports": ["0", "1"]}}))
    formula = f"rr.q1 ~ {COLUMNS}"
    table, _ = load_survey(str(NIGERIA), str(tmp_path / "d.json"), formula, "drop")
    found = peak(table, formula)
    wanted = [-0.34017, 0.07896, -0.26743, -0.35283, 0.04099, -0.00691, -0.55439]
    sds = [0.49292, 0.04042, 0.24137, 0.26368, 0.02713, 0.04466, 0.16268]
    assert list(found.values.values()) == pytest.approx(wanted, abs=1e-4)
    assert list(found.sds.values()) == pytest.approx(sds, abs=1e-3)
    assert found.log_likelihood == pytest.approx(-1540.11785, abs=1e-4)
