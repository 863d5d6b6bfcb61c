"""Only regressions from clipped records have a note; the effect on slopes is as documented."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from inference import summarize
from inference.models import model_for
from inference.models.holder_regression import holder_regression
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from schemas import Study
from tests import studies
from tests.inference.holder_tables import reports_of, statistics_of
from tests.inference.simulation import seeded

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
QUESTION = {
    "id": "wage",
    "ask": "table",
    "features": [{"id": name, "bounds": ["-1", "1"]} for name in ("a", "b")],
    "norm": "1",
    "response": {"id": "rate", "bounds": ["-1", "1"]},
    "mechanism": {"name": "table_statistics", "epsilon": "8", "delta": "1e-6"},
    "model": {"name": "linear_regression"},
}
WIDE_NORM = {"norm": "1.5"}
SMALL_NORM = {"norm": "0.3"}
LAPLACE = {"mechanism": {"name": "table_statistics_laplace", "epsilon": "8"}}
CENTRED = {"mechanism": {**QUESTION["mechanism"], "intercept": False, "average": 5}}
DROWNED = {"mechanism": {**QUESTION["mechanism"], "epsilon": "0.001"}}


def study_of(changes):
    return Study(studies.document(copy.deepcopy(QUESTION) | changes, respondent="holder"))


def records(n, slope, sd=0.3, seed=0):
    """Two features and a response that they explain but for an sd of 0.1."""
    random = np.random.default_rng(seed)
    x = random.normal(0, sd, (n, 2))
    return {"a": x[:, 0], "b": x[:, 1], "rate": slope * x.sum(axis=1) + random.normal(0, 0.1, n)}


def yes_or_no(n):
    """Features of two values, within a norm that cuts none, and a response within its bounds."""
    random = np.random.default_rng(0)
    a, b = random.choice([-1.0, 1.0], (2, n))
    return {"a": a, "b": b, "rate": 0.2 * a + random.normal(0, 0.1, n)}


CASES = {
    "none": ({}, records(20_000, 0.5), ""),
    "response": ({}, records(20_000, 3.0), "the response's mean and sd"),
    "response, Laplace noise": (LAPLACE, records(20_000, 3.0), "the response's mean and sd"),
    "response, averaged and centred": (CENTRED, records(20_000, 3.0), "the response's mean and sd"),
    "norm": (SMALL_NORM, records(20_000, 0.5), "the norm 0.3 cuts many records short"),
    "feature": (WIDE_NORM, records(20_000, 0.05, 1.0), "mean and sd of a, b has much beyond the bounds"),
    "yes or no": (WIDE_NORM, yes_or_no(20_000), ""),
    "too few to tell": ({}, records(10, 3.0), ""),
    "too much noise to tell": (DROWNED, records(20_000, 3.0), ""),
}


@pytest.mark.parametrize(("changes", "table", "said"), CASES.values(), ids=CASES)
def test_holders_clipped_records_are_noted(changes, table, said):
    study = study_of(changes)
    half = {name: np.array_split(values, 2) for name, values in table.items()}
    statistics = statistics_of(study, [{name: parts[i] for name, parts in half.items()} for i in (0, 1)])
    notes = holder_regression(study.questions[0], statistics).notes
    assert sum("taken to vary by one sd" in note for note in notes) == 1
    notes = [note for note in notes if "skewed" not in note and "one sd" not in note]
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


def test_published_methods_note_clipped_records():
    from inference import fit

    study = study_of({})
    found = fit(study, reports_of(study, [records(20_000, 3.0)]), method="bayes_fixeds_fast")["wage"]
    assert any("the response's mean and sd" in note for note in found.diagnostics.notes)


@pytest.mark.parametrize("mechanism", [studies.GAUSSIAN, studies.NOISY_RECORD], ids=["summed", "record"])
@pytest.mark.parametrize(
    ("norm", "slope", "said"), [("1", 3.0, "response's"), ("0.3", 0.5, "norm 0.3"), ("1", 0.3, "")]
)
def test_peoples_clipped_records_are_noted(mechanism, norm, slope, said):
    question = copy.deepcopy(QUESTION) | {
        "ask": "record",
        "norm": norm,
        "mechanism": {**mechanism, "epsilon": "60"},
    }
    study = Study(studies.document(question))
    mechanisms = {"wage": mechanism_for(study.questions[0])}
    table = records(1000, slope)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    random = seeded(study.digest, rows)
    summary = summarize(study, [perturb_answers(study, mechanisms, {"wage": row}, random) for row in rows])
    notes = model_for(study.questions[0], summary.questions["wage"]).notes
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


def test_figures_of_guide_on_clipping_are_right():
    """Least squares of a normal response that is clipped at its bounds: slopes shrink."""
    rows = re.findall(r"^\| (\d+) % \| ([0-9.]+) \| (\d+) % \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 4
    x = norm.ppf((np.arange(400_000) + 0.5) / 400_000)
    for clipped, slope, shown in ((float(part) for part in row) for row in rows):
        sd = -1 / norm.ppf(clipped / 200)
        y = np.clip(sd * x, -1, 1)
        assert x @ y / (x @ x) / sd == pytest.approx(slope, abs=0.006)
        assert 200 * norm.cdf(-1 / np.sqrt(np.mean(y**2))) == pytest.approx(shown, abs=0.6)
