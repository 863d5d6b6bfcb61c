"""Posteriors are right: fits with stated priors give those of tests/golden/fits.

These were computed without the code under test. `python -m tests.inference.golden` rewrites them.
"""

import json
from functools import cache

import pytest

from inference import Summary, fit, summarize
from schemas import Study
from tests.inference.golden.families import FAMILIES, FAST, differences, read
from tests.kit.modes import fit_without_derivatives

CASES = [
    pytest.param(family, name, id=f"{family}: {name}", marks=[pytest.mark.slow] * (name not in FAST[family]))
    for family, cases in FAMILIES.items()
    for name in cases
]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    fit_without_derivatives(monkeypatch)


@cache
def data_of(family, name):
    return FAMILIES[family][name].data()


@pytest.mark.parametrize(("family", "name"), CASES)
def test_fit_matches_golden_posterior(family, name):
    case, golden = FAMILIES[family][name], read(family)[name]
    data = data_of(family, name)
    assert data.digest == golden["data"], "the reports are others than those of the golden values"
    assert golden["quantities"]
    assert differences(case.draws(data), golden["quantities"]) == []


@pytest.mark.parametrize("name", ["many, bernoulli with refusals", "many, multinomial, hadamard"])
def test_noise_that_is_off_by_three_percent_is_detected(name):
    """The reports are taken for those of another epsilon."""
    data = data_of("choices", name)
    document = json.loads(data.study.to_json())
    document["questions"][0]["mechanism"]["epsilon"] = "1.03"
    wrong = Study(document)
    summary = Summary(wrong.id, wrong.version, wrong.digest, summarize(data.study, data.reports).questions)
    (posterior,) = fit(wrong, summary, method="gaussian_approx").values()
    assert differences(dict(posterior.draws), read("choices")[name]["quantities"]) != []
