"""Multiply a level with a number far from 0, where a prior of the level says something about nobody.

Defence: The analysis: a note says so, and asks for center(); a stated prior is of the coefficient itself.
"""

import jax
import numpy as np
import pytest
from numpyro import handlers

from inference.analyses.analysing import analyse_table, model_of, notes_of, overruled_by_priors
from inference.analyses.assembling import assemble
from inference.sampling import sample_prior
from tests.inference.analyses.simulated import table

PRIOR = {"distribution": "normal", "loc": 0.5, "scale": 0.3}


def log_prior(law, coefficients):
    """Of coefficients (columns of the matrix, outputs)."""
    with jax.enable_x64(True), handlers.substitute(data=law.sites(coefficients)):
        trace = handlers.trace(law.drawn).get_trace()
        return float(sum(one["fn"].log_prob(one["value"]).sum() for one in trace.values()))


@pytest.mark.parametrize(
    ("formula", "noted"),
    [
        ("ever ~ region * age", True),
        ("ever ~ region:age", True),
        ("ever ~ region * center(age)", False),
        ("ever ~ region + age", False),
        ("ever ~ region * died", False),
        ("ever ~ bs(age, df=4)", False),
    ],
)
def test_product_with_number_far_from_zero_is_noted(formula, noted):
    assert any("far from all people" in note for note in notes_of(assemble(table(200), formula))) == noted


FAR = "I(age + 2000)"


@pytest.mark.parametrize(
    ("formula", "overruled"),
    [
        (f"ever ~ {FAR} + I((age + 2000) ** 2)", (FAR, "I((age + 2000) ** 2)")),
        (f"ever ~ region * {FAR}", (f"region:{FAR}[north]", f"region:{FAR}[west]")),
        ("ever ~ center(age) + I(center(age) ** 2)", ()),
        ("ever ~ region * age", ()),
    ],
)
def test_priors_that_decide_powers_and_products_are_a_reason(formula, overruled):
    analysis = assemble(table(200), formula)
    assert set(overruled) == set(analysis.law.overruled)
    reasons = overruled_by_priors(analysis)
    assert all(name in reasons[0] for name in overruled) if overruled else reasons == ()


@pytest.mark.parametrize("formula", [f"ever ~ {FAR} + I((age + 2000) ** 2)", f"ever ~ region * {FAR}"])
def test_flat_priors_are_taken_although_numbers_are_far_from_zero(formula):
    flat = analyse_table(table(2000), formula, priors="flat", method="gaussian_approx")
    centred = analyse_table(
        table(2000), formula.replace(FAR, "center(age)").replace("age + 2000", "center(age)")
    )
    last = list(flat.draws)[-1]
    assert flat.draws[last].mean() == pytest.approx(list(centred.draws.values())[-1].mean(), abs=0.3)


def test_prior_draws_match_prior_density():
    analysis = assemble(table(200), "job ~ region * center(age)", {"center(age)": PRIOR})
    law, count = analysis.law, 4000
    drawn = law.coefficients(sample_prior(model_of(analysis), 1, count))
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
        # Chi-squared of some 6 dimensions: their differences are of this size.
        assert np.corrcoef(found, expected)[0, 1] > 0.99
        assert np.std(np.asarray(found) - expected) < 0.1 * np.std(expected)


def test_stated_prior_applies_to_coefficient_itself():
    given = {"region[north]": PRIOR, "region:age[north]": "flat", "Intercept": PRIOR}
    law = assemble(table(200), "ever ~ region * age", given).law
    one = np.zeros((len(law.matrix.terms), 1))
    other = one.copy()
    other[law.matrix.names.index("region[north]")] = 0.5
    assert log_prior(law, other) - log_prior(law, one) == pytest.approx((0.5 / 0.3) ** 2 / 2, rel=1e-3)
    assert law.prior_by_name()["region[north]"][0] == PRIOR


def test_flat_prior_leaves_the_intercept_without_prior():
    whole = table(200)
    flat = {"region:age": "flat"}
    silent = assemble(whole, "ever ~ region * age", flat).without_prior()
    assert silent == {"Intercept", "region:age[north]", "region:age[west]"}
    stated = assemble(whole, "ever ~ region * age", {**flat, "Intercept": PRIOR}).without_prior()
    assert stated == silent - {"Intercept"}


def test_ordered_cutpoints_are_drawn_from_their_prior():
    analysis = assemble(table(200), "mood ~ age", {"threshold": PRIOR})
    drawn = sample_prior(model_of(analysis), 1, 4000)["threshold"]
    assert (np.diff(drawn, axis=-1) > 0).all()
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)
    assert drawn.std() == pytest.approx(0.3, rel=0.05)
