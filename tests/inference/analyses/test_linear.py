"""Priors of coefficients hold for people, whatever the columns' units, sizes of groups and zeros."""

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers

from inference.analyses.analysing import model_of, notes_of, overruled_by_priors
from inference.analyses.program import assemble
from inference.sampling.space import sample_prior
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import forced, sites_of, table
from tests.kit.errors import raises

PRIOR = {"distribution": "normal", "loc": 0.5, "scale": 0.3}
FAR = "I(age + 2000)"


def test_prior_of_level_does_not_depend_on_its_size():
    # 20 of 5,000 people are in region z, and as many have something else.
    place = np.arange(5000)
    region = np.where(place < 20, "z", np.where(place % 2, "a", "b"))
    whole = forced({"region": region, "rare": (place >= 4980).astype(int), "age": 20.0 + place // 2 % 50})
    priors = assemble(whole, "armed ~ region * age + rare").priors()
    scales = {name: prior["scale"] for name, prior in priors.items()}
    assert [scales[name] for name in ("region[b]", "region[z]", "rare")] == pytest.approx([2.5] * 3)
    age = whole.public["age"]
    assert scales["age"] == pytest.approx(2.5 / age.std(ddof=0))
    for level in "bz":
        own = age[whole.public["region"] == level].std(ddof=0)
        assert scales[f"region:age[{level}]"] == pytest.approx(2.5 / own)


@pytest.mark.parametrize(
    ("priors", "code"),
    [
        ({"agee": "flat"}, ("prior.unknown_parameter", "'agee'")),
        ({"age": {"distribution": "beta", "a": 1, "b": 1}}, ("prior.invalid", "age.distribution")),
        ({"age": {"distribution": "normal", "loc": 0, "scale": -1}}, ("prior.invalid", "age.scale")),
        ({"age": {"distribution": "normal", "loc": 0}}, ("prior.invalid", "age.scale")),
        ("none", "prior.wrong_form"),
    ],
)
def test_unusable_prior_is_rejected(priors, code):
    with raises(InputError, code):
        assemble(table(), "ever ~ age", priors)


def test_flat_prior_of_level_without_reports_is_rejected():
    whole = forced({"region": pd.Categorical(["a", "b"] * 50, categories=["a", "b", "c"])})
    assert any("no report has region[c]" in note for note in notes_of(assemble(whole, "armed ~ region")))
    with raises(InputError, "prior.flat_without_reports", "region[c]"):
        assemble(whole, "armed ~ region", "flat")


@pytest.mark.attack(18)
@pytest.mark.parametrize(
    ("formula", "overruled"),
    [
        ("ever ~ region * age", ()),
        ("ever ~ bs(age, df=4)", ()),
        (f"ever ~ {FAR} + I((age + 2000) ** 2)", (FAR, "I((age + 2000) ** 2)")),
        (f"ever ~ region * {FAR}", (f"region:{FAR}[north]", f"region:{FAR}[west]")),
        ("ever ~ center(age) + I(center(age) ** 2)", ()),
    ],
)
def test_prior_that_decides_is_a_reason(formula, overruled):
    """A level times a number very far from 0: the prior of people at 0, who do not exist, decides."""
    analysis = assemble(table(200), formula)
    assert set(overruled) == set(analysis.law.overruled)
    reasons = overruled_by_priors(analysis)
    assert all(name in reasons[0] for name in overruled) if overruled else reasons == ()


def test_stated_prior_applies_to_coefficient_itself():
    given = {"region[north]": PRIOR, "region:age[north]": "flat", "Intercept": PRIOR}
    analysis = assemble(table(200), "ever ~ region * age", given)
    law = analysis.law
    zero = np.zeros(len(law.matrix.terms))
    there = np.where(np.asarray(law.matrix.names) == "region[north]", 0.5, zero)

    def log_prior(coefficients):
        with jax.enable_x64(True), handlers.substitute(data=sites_of(law, coefficients)):
            trace = handlers.trace(law.drawn).get_trace()
            return sum(float(one["fn"].log_prob(one["value"]).sum()) for one in trace.values())

    assert log_prior(there) - log_prior(zero) == pytest.approx((0.5 / 0.3) ** 2 / 2, rel=1e-3)
    assert analysis.priors()["region[north]"] == PRIOR


def test_flat_prior_leaves_the_intercept_without_prior():
    whole, flat = table(200), {"region:age": "flat"}
    silent = assemble(whole, "ever ~ region * age", flat).without_prior()
    assert silent == {"Intercept", "region:age[north]", "region:age[west]"}
    stated = assemble(whole, "ever ~ region * age", {**flat, "Intercept": PRIOR}).without_prior()
    assert stated == silent - {"Intercept"}


@pytest.mark.slow
def test_cutpoints_and_coefficients_are_drawn_from_their_priors():
    analysis = assemble(table(200), "mood ~ age", {"threshold": PRIOR, "age": PRIOR})
    drawn = sample_prior(model_of(analysis), 1, 4000)
    assert (np.diff(drawn["threshold"], axis=-1) > 0).all()
    for own in (drawn["threshold"], analysis.law.coefficients(drawn)[:, 1]):
        assert own.mean() == pytest.approx(0.5, abs=0.02)
        assert own.std() == pytest.approx(0.3, rel=0.05)
