"""Multiply a level with a number far from 0, where a prior of the level pulls the interaction to nothing.

Defence: The analysis: default priors are stated with a number in a product or a polynomial counted from its
mean, so that the posterior is the same whatever its zero is, and a note says so; where the formula lacks
the terms below a product, as `region:age` alone, the number stays, and a note says that it is never near 0.
A stated prior is of the coefficient itself.
"""

from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers

from inference.analyses.analysing import analyse_table, notes_of
from inference.analyses.assembling import assemble
from inference.analyses.prior_sites import prior_sites, without_prior
from inference.analyses.table import known_channel, table_of
from tests.inference.analyses.simulated import table

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
PRIOR = {"distribution": "normal", "loc": 0.5, "scale": 0.3}
YEARS = [{"id": "year", "bounds": ["0", "2030"], "step": "1"}]
REGIONS = [{"id": "region", "text": "Where?", "choices": ["north", "south"]}]


def moved(whole, by):
    """The table with another zero of its ages."""
    return replace(whole, public=whole.public.assign(age=whole.public["age"] + by))


def log_prior(law, coefficients):
    """Of coefficients (columns of the matrix, outputs), up to a constant."""
    sites = law.sites(coefficients)
    with jax.enable_x64(True), handlers.substitute(data=sites):
        trace = handlers.trace(law.drawn).get_trace()
        parts = [one["fn"].log_prob(one["value"]).sum() for name, one in trace.items() if "_prior" in name]
        return float(sum(parts))


def same_line(law, other, coefficients):
    """The coefficients of another law of the same line."""
    columns, others = (one.matrix.values.reshape(-1, len(one.matrix.terms)) for one in (law, other))
    return np.linalg.lstsq(others, columns @ coefficients, rcond=None)[0]


def assert_same_prior(law, other):
    """Whatever line there is."""
    random = np.random.default_rng(0)
    found = []
    for _ in range(3):
        slopes = random.normal(size=(len(law.matrix.terms), len(law.outputs)))
        slopes[law.columns] /= law.spreads[:, None]
        found.append(log_prior(law, slopes) - log_prior(other, same_line(law, other, slopes)))
    np.testing.assert_allclose(found, found[0], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "formula",
    [
        "ever ~ region * age",
        "ever ~ 0 + region + region:age",
        "ever ~ age + I(age**2)",
        "ever ~ region * (age + I(age**2))",
        "ever ~ age * `cov.size`",
        "ever ~ region * age + (age | clinic)",
        "ever ~ smokes * age",
        "job ~ region * age",
        "visits ~ region * age",
    ],
)
def test_prior_does_not_depend_on_zero_of_number(formula):
    whole = table(200)
    one, other = (assemble(moved(whole, by), formula) for by in (30.0, -40.0))
    for law, same in zip(one.linears, other.linears, strict=True):
        assert_same_prior(law, same)


@pytest.mark.parametrize(
    ("formula", "same"),
    [
        ("ever ~ region * age", "ever ~ region * I(age - 70)"),
        ("ever ~ region * age", "ever ~ region * center(age)"),
        ("ever ~ age + I(age**2)", "ever ~ I(age - 30) + I((age - 30)**2)"),
        ("ever ~ age + I(age**2)", "ever ~ I(age - 30) + I((age - 70)**2)"),
        ("ever ~ region * np.log(age)", "ever ~ region * np.log(age / 1000)"),
    ],
)
def test_equivalent_formulas_have_same_prior(formula, same):
    whole = table(200)
    one, other = (assemble(whole, text).law for text in (formula, same))
    assert one.prior_rows is not None
    assert_same_prior(one, other)


@pytest.mark.parametrize(
    "formula",
    ["ever ~ region + age", "ever ~ region * died", "ever ~ region * center(age)", "ever ~ bs(age, df=4)"],
)
def test_centred_number_is_left_unchanged(formula):
    analysis = assemble(table(200), formula)
    assert analysis.law.prior_rows is None
    assert not any("default priors" in note for note in notes_of(analysis))


@pytest.mark.parametrize(
    ("formula", "named"),
    [
        ("ever ~ region:age", ["age"]),
        ("ever ~ age:year", ["age", "year"]),
        ("ever ~ region:center(age)", []),
        ("ever ~ region * age", []),
        ("ever ~ 0 + region + region:age", []),
    ],
)
def test_number_that_cannot_be_centred_is_noted(formula, named):
    """Without the terms below the product, another zero would give another line."""
    whole = moved(table(200), 20.0)
    whole = replace(whole, public=whole.public.assign(year=2000.0 + np.arange(len(whole.public)) % 20))
    notes = [note for note in notes_of(assemble(whole, formula)) if "far from all people" in note]
    assert bool(notes) == bool(named)
    assert all(f"where {' and '.join(named)} is 0," in note for note in notes)


def test_prior_draws_match_prior_density():
    analysis = assemble(table(200), "job ~ region * age + region * I(age**2)", {"age": PRIOR})
    law, count = analysis.law, 4000
    drawn = law.coefficients(prior_sites(analysis, 1, count))
    for output in range(len(law.outputs)):
        own = drawn[..., output] * [1.0, *law.spreads]
        precision = np.linalg.inv(np.cov(own.T))
        away = own - own.mean(axis=0)
        expected = -np.einsum("si,ij,sj->s", away, precision, away)[:40] / 2
        others = drawn[0].copy()
        found = []
        for one in drawn[:40]:
            others[:, output] = one[:, output]
            found.append(log_prior(law, others))
        # Chi-squared of some 8 dimensions: their differences are of this size.
        assert np.corrcoef(found, expected)[0, 1] > 0.99
        assert np.std(np.asarray(found) - expected) < 0.1 * np.std(expected)


def test_stated_prior_applies_to_coefficient_itself():
    whole = table(200)
    law = assemble(whole, "ever ~ region * age", {"region[north]": PRIOR, "region:age[north]": "flat"}).law
    one = np.zeros((len(law.matrix.terms), 1))
    place = law.matrix.names.index("region[north]")
    other = one.copy()
    other[place] = 0.5
    apart = log_prior(law, other) - log_prior(law, one)
    of_intercept = (0.5 * law.middles[place - 1] / 2.5) ** 2 / 2
    assert apart == pytest.approx((0.5 / 0.3) ** 2 / 2 - of_intercept, rel=1e-3)
    assert law.moved_priors() == ["region[west]"]
    assert law.prior_by_name()["region[north]"][0] == PRIOR


def test_flat_prior_removes_prior_of_dependent_coefficients():
    analysis = assemble(table(200), "ever ~ region * age", {"region:age": "flat"})
    assert {"region[north]", "region[west]", "Intercept"} <= without_prior(analysis)
    assert "age" not in without_prior(analysis)


def fitted(formula):
    """Of 3,000 people of 60 to 80, with a slope of 0.15 in the south alone, and regions alike at 70."""
    random = np.random.default_rng(0)
    age, south = random.integers(60, 81, 3000), random.random(3000) < 0.5
    log_odds = -0.5 + south * 0.15 * (age - 70)
    says, die = random.random(3000) < 1 / (1 + np.exp(-log_odds)), random.integers(1, 7, 3000)
    reports = np.where(die == 1, 1, np.where(die == 6, 0, says)).astype(int)
    frame = pd.DataFrame({"region": np.where(south, "south", "north"), "age": age.astype(float)})
    whole = table_of(frame, [known_channel("armed", ["no", "yes"], reports, FORCED)])
    return analyse_table(whole, formula, method="gaussian_approx", draws=500)


@pytest.mark.slow
def test_interaction_is_found_for_any_zero_of_number():
    """The interaction used to shrink from 0.15 to 0.11, the other slope left 0, and the verdict was ok."""
    one, other = fitted("armed ~ region * age"), fitted("armed ~ region * I(age - 70)")
    slopes = [one.draws["region:age[south]"], other.draws["region:I(age - 70)[south]"]]
    levels = [one.draws["region[south]"] + 70 * slopes[0], other.draws["region[south]"]]
    for pair, true in ((slopes, 0.15), (levels, 0.0)):
        low, high = np.quantile(pair[0], [0.05, 0.95])
        assert low < true < high
        assert np.mean(pair[0]) == pytest.approx(np.mean(pair[1]), abs=0.25 * np.std(pair[1]))
    assert "region[south] are stated where age is" in " ".join(one.diagnostics.notes)
    assert one.verdict.informativeness.state == "good"
