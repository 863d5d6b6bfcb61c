"""The same seed, machine and versions give the same posterior.

Fits of the same data under one seed repeat their draws to the last bit. Fits of other data, or under another
seed, draw independently.
"""

import itertools
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from inference import analyse, fit
from schemas import Study
from tests import studies
from tests.kit.reporting import reports_of

REGION = {"id": "region", "choices": ["north", "south"]}
STUDY = Study(studies.document(studies.with_epsilon(studies.YES_NO, "3"), public=[REGION]))
# The correlation of 2,000 independent draws is below this.
CORRELATION = 0.1
REPOSITORY = Path(__file__).parents[2]


@cache
def reports(data):
    """Reports of 300 people, other ones of other data."""
    every = 3 if data == "first" else 4
    people = [{"ever": person % every == 0, "region": REGION["choices"][person % 2]} for person in range(300)]
    return reports_of(STUDY, people)


# Each fit takes two seconds of tracing: the fast tests make six.
FITS = {
    "a yes or no, approximated": lambda data, seed: fit(
        STUDY, reports(data), seed, method="gaussian_approx", draws=500
    )["ever"],
    "a yes or no": lambda data, seed: fit(STUDY, reports(data), seed, draws=500)["ever"],
    "a formula": lambda data, seed: analyse(STUDY, reports(data), "ever ~ region", seed=seed, draws=500),
}
NAMES = [name if "approximated" in name else pytest.param(name, marks=pytest.mark.slow) for name in FITS]


def draws_of(posterior):
    return {name: np.asarray(draws) for name, draws in posterior.draws.items()}


def correlation(one, other):
    """The largest correlation of a parameter's draws in two posteriors, draw by draw."""
    first, second = draws_of(one), draws_of(other)
    assert first.keys() == second.keys()
    count = min(draws.shape[1] for draws in (*first.values(), *second.values()))
    pairs = [(first[name][:, :count].ravel(), second[name][:, :count].ravel()) for name in first]
    return max(abs(float(np.corrcoef(*pair)[0, 1])) for pair in pairs)


@cache
def first_fit(name):
    """The posterior with which others are compared."""
    return FITS[name]("first", 1)


def repeats(name):
    """Whether a second fit has the same draws and the same document."""
    posteriors = first_fit(name), FITS[name]("first", 1)
    first, second = map(draws_of, posteriors)
    documents = [json.dumps(posterior.to_document()) for posterior in posteriors]
    return documents[0] == documents[1] and all(np.array_equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("name", NAMES)
def test_repeated_fit_is_identical_and_planted_unseeded_generator_is_found(name, monkeypatch):
    assert repeats(name)
    calls = itertools.count(7)
    monkeypatch.setattr("inference.fit_model.seed_of", lambda *_arguments: next(calls))
    assert not repeats(name)


@pytest.mark.parametrize("name", NAMES)
def test_fits_of_other_data_are_independent(name):
    assert correlation(first_fit(name), FITS[name]("second", 1)) < CORRELATION


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_another_seed_gives_other_draws(name):
    assert correlation(first_fit(name), FITS[name]("first", 2)) < CORRELATION


def fitted_elsewhere(folder, hash_seed):
    """What posterior.json says after a fit in a process whose hashes of texts begin with that seed."""
    command = ["fit", "study.json", "reports.ndjson", "--out", f"fit-{hash_seed}", "--seed", "5"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)}
    program = [sys.executable, "-m", "ldpkit", *command, "--draws", "100"]
    subprocess.run(program, cwd=folder, env=environment, check=True, capture_output=True)
    document = json.loads((folder / f"fit-{hash_seed}" / "posterior.json").read_text(encoding="utf-8"))
    return document["questions"]


@pytest.mark.slow
def test_posterior_does_not_depend_on_hash_seed(tmp_path):
    (tmp_path / "study.json").write_text(STUDY.to_json(), encoding="utf-8")
    lines = [report.to_json() + "\n" for report in reports("first")]
    (tmp_path / "reports.ndjson").write_text("".join(lines), encoding="utf-8")
    assert fitted_elsewhere(tmp_path, "1") == fitted_elsewhere(tmp_path, "2")
