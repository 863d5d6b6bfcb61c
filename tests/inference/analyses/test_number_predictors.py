"""A private number as predictor: its likelihood is fine integration's, and a wrong law of it is found."""

from __future__ import annotations

from dataclasses import replace
from math import erf, log, pi, sqrt

import jax
import numpy as np
import pandas as pd
import pytest
from numpy.polynomial.legendre import leggauss
from numpyro import handlers

from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from inference.analyses.prior_sites import prior_sites
from inference.analyses.resolving import unresolved
from inference.analyses.table import known_channel, table_of
from inference.design.formula_plan import plan_formula
from inference.design.possible_reports import possible_of_study
from inference.results.predictive import Predictive
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.inference.analyses.simulated import JOBS, YES_NO
from tests.inference.analyses.test_likelihood import derivative, log_likelihood
from tests.inference.analyses.test_private_numbers import GAUSSIAN, HIGH, LAPLACE, LOW, reported

JOB = ("none", "worker", "teacher")
PLACES, WEIGHTS = leggauss(150)
SHARP = {**LAPLACE, "mechanism": {"name": "laplace", "epsilon": "8"}}


def people(n, document=LAPLACE, seed=0, law="normal", other=None):
    """Who works more dies more, is sick more, and earns more; `ever` and `job` say nothing."""
    random = np.random.default_rng(seed)
    age = random.choice([20.0, 30.0, 40.0, 50.0], n)
    drawn = {
        "normal": random.normal(5 + 0.05 * (age - 35), 2, n),
        "lognormal": random.lognormal(1.0, 0.8, n),
        "groups": np.where(random.random(n) < 0.5, 2.0, 9.0) + random.normal(0, 0.5, n),
    }
    hours = np.clip(drawn[law], LOW, HIGH)
    died = (random.random(n) < 1 / (1 + np.exp(2 - 0.4 * hours))).astype(int)
    income = random.normal(2 + hours, 2, n)
    said = [random.random(n) < np.asarray(YES_NO)[truth, 1] for truth in (died, np.zeros(n, int))]
    private = [
        reported(document, hours, seed + 1),
        known_channel("sick", ("no", "yes"), said[0].astype(int), YES_NO),
        known_channel("ever", ("no", "yes"), said[1].astype(int), YES_NO),
        known_channel("job", JOB, random.integers(0, 3, n), JOBS),
    ]
    if other:
        private.append(other)
    frame = pd.DataFrame({"age": age, "died": died, "income": income, "clinic": random.integers(0, 3, n)})
    return table_of(frame, private)


def expit(x):
    return 1 / (1 + np.exp(-x))


def integrated(whole, found, formula, b):
    """Σ over reports of log ∫ noise × law of the answer as clipped × what the outcome's report says."""
    hours, outcome = whole.private["hours"], found.formula.outcome
    total = 0.0
    for row, age in enumerate(whole.public["age"]):
        z = float(hours.vectors[hours.codes[row], 0])
        evers = (0, 1) if "ever" in formula else (0,)
        shares = [1.0]
        if "ever" in formula:
            own = expit(b["ever_Intercept[yes]"] + b.get("ever_age[yes]", 0) * age)
            shares = [(1 - own) * chance(whole, "ever", row, 0), own * chance(whole, "ever", row, 1)]
        inside = 0.0
        for ever, share in zip(evers, shares, strict=True):
            mean = b["hours_Intercept"] + b.get("hours_age", 0) * age + b.get("hours_ever[yes]", 0) * ever
            sd = b["hours_sigma"]

            def of(x, ever=ever, z=z, row=row, age=age):
                eta = b["Intercept"] + b["hours"] * x + b.get("age", 0) * age + b.get("ever[yes]", 0) * ever
                return noise(hours.channel, z - x) * said(whole, outcome, row, eta, b, x)

            ends = [LOW, *([z] if LOW < z < HIGH else []), HIGH]
            for low, high in zip(ends, ends[1:], strict=False):
                x = low + (high - low) * (PLACES + 1) / 2
                density = np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * sqrt(2 * pi))
                inside += share * float(np.sum(WEIGHTS * (high - low) / 2 * density * of(x)))
            at_low = (1 + erf((LOW - mean) / sd / sqrt(2))) / 2
            at_high = (1 - erf((HIGH - mean) / sd / sqrt(2))) / 2
            inside += share * (at_low * float(of(LOW)) + at_high * float(of(HIGH)))
        total += log(inside)
    return total


def noise(channel, away):
    if channel.noise == "laplace":
        return np.exp(-np.abs(away) / channel.scale) / (2 * channel.scale)
    return np.exp(-((away / channel.scale) ** 2) / 2) / (channel.scale * sqrt(2 * pi))


def chance(whole, name, row, answer):
    one = whole.private[name]
    return one.vectors[one.codes[row], answer]


def said(whole, outcome, row, eta, b, x):
    """What the outcome's report, or the outcome itself, says at a linear predictor."""
    if outcome == "died":
        return expit(eta if whole.public["died"][row] else -eta)
    if outcome == "sick":
        return expit(-eta) * chance(whole, "sick", row, 0) + expit(eta) * chance(whole, "sick", row, 1)
    if outcome == "job":
        lines = [0 * x] + [b[f"Intercept[{one}]"] + b[f"hours[{one}]"] * x for one in JOB[1:]]
        powers = np.exp(np.asarray(lines))
        return sum(powers[k] * chance(whole, "job", row, k) for k in range(3)) / powers.sum(axis=0)
    away = (whole.public["income"][row] - eta) / b["sigma"]
    return np.exp(-(away**2) / 2) / (b["sigma"] * sqrt(2 * pi))


SHAPES = ["died ~ hours + age", "sick ~ hours + ever", "income ~ hours", "job ~ hours"]


@pytest.mark.slow
@pytest.mark.parametrize("document", [SHARP, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("formula", SHAPES)
def test_the_likelihood_is_that_of_fine_integration(formula, document):
    is_integrated(formula, document)


@pytest.mark.slow
def test_so_it_is_without_other_columns():
    is_integrated("died ~ hours", SHARP)


def is_integrated(formula, document):
    """The value, and its slopes by differences."""
    whole = people(6, document)
    found = assemble(whole, formula)
    random = np.random.default_rng(5)
    sites = {
        name: np.asarray(one, float) + 0.2 * random.random(np.shape(one))
        for name, one in found.initial().items()
    }

    def brute(values):
        b = {name: float(value) for name, value in found.parameters(values).items()}
        if "job" in formula:
            b |= {"Intercept": 0.0, "hours": 0.0}
        return integrated(whole, found, formula, b)

    with jax.enable_x64(True):
        own = log_likelihood(found, {name: np.asarray(value) for name, value in found.data().items()})
        assert float(own(sites)) == pytest.approx(brute(sites), abs=1e-10)
        slopes = jax.grad(own)(sites)
    for name, value in sites.items():
        for place in np.ndindex(value.shape):
            wanted = derivative(brute, sites, name, place)
            assert float(np.asarray(slopes[name])[place]) == pytest.approx(wanted, rel=1e-8, abs=1e-8)


@pytest.mark.slow
def test_a_private_number_by_another_private_column():
    """The number's law, given the choice beside it, adds up to what each alone has."""
    found = assemble(people(30), "died ~ hours + ever + (1 | clinic)")
    assert {"hours_Intercept", "hours_ever[yes]", "hours_sigma", "hours_1|clinic_sigma"} <= set(
        found.priors()
    )
    with jax.enable_x64(True), handlers.seed(rng_seed=0), handlers.substitute(data=found.initial()):
        _, log_shares, _ = found.drawn({name: np.asarray(value) for name, value in found.data().items()})
        assert np.allclose(np.exp(log_shares).sum(axis=1), 1, atol=1e-12)


def test_what_does_not_fit_a_private_number_is_refused():
    whole = people(8, other=replace(reported(LAPLACE, np.full(8, 3.0)), name="rest"))
    with pytest.raises(InputError, match="both private numbers"):
        assemble(whole, "died ~ hours + rest")
    for term in ("C(hours)", "scale(hours)", "bs(hours, df=4)"):
        with pytest.raises(InputError, match="cannot be found"):
            assemble(whole, f"died ~ {term}")
    assemble(whole, "died ~ hours + I(hours**2) + np.sqrt(hours)")


def test_a_plan_by_a_private_number_is_refused():
    """It has no truth for the number's own law."""
    study = Study({**studies.document(LAPLACE), "public": [{"id": "died", "choices": ["no", "yes"]}]})
    with pytest.raises(InputError, match="plan with its bands"):
        plan_formula(possible_of_study(study, "died ~ hours", None), "died ~ hours")


@pytest.mark.slow
def test_a_quadrature_that_is_too_coarse_is_found():
    """A law as narrow as the distance of two places; and a term with a jump."""
    whole = people(400, SHARP)
    for formula, sd, sound in (("died ~ hours", 2.0, True), ("died ~ hours", 0.02, False)):
        found = assemble(whole, formula)
        sites = {name: np.asarray(value, float)[None, None] for name, value in found.initial().items()}
        sites["number_sd"] = np.full((1, 1), sd)
        assert bool(unresolved(found, sites)) != sound
    found = assemble(whole, "died ~ I(1.0 * (hours > 5.03))")
    sites = {name: np.asarray(value, float)[None, None] for name, value in found.initial().items()}
    sites["law_rotated"] = np.full((1, 1, 1, 1), 3.0)
    assert unresolved(found, sites)


@pytest.mark.slow
@pytest.mark.parametrize("document", [SHARP, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("family", ["normal", "exponential", "poisson"])
def test_the_parts_of_reports_have_the_chances_of_their_density(document, family):
    """∫ of the likelihood's own density over each part, beyond the bounds too under Gaussian noise."""
    found = assemble(people(200, document), "hours ~ 1", family=family)
    channel = found.response.channel
    cuts = np.asarray([1.0, 4.0, 4.5, 9.0, 11.0])
    if channel.noise == "gaussian":
        cuts = np.asarray([-3.0, 1.0, 9.0, 14.0])
    with jax.enable_x64(True):
        eta = np.asarray([[5.0 if family == "normal" else 1.3]])
        law = found.outcome.law_of(eta, {"sigma": np.asarray([2.0])})
        shares = np.asarray(jax.jit(lambda law: channel.shares(law, cuts))(law))[0]
        log_density = jax.jit(channel.log_density)
        for place, (low, high) in enumerate(zip(cuts, cuts[1:], strict=False)):
            # No kink of the noise lies at a whole number inside a step of one.
            ends = np.unique([low, high, *np.arange(np.ceil(low), high)])
            total = 0.0
            for left, right in zip(ends, ends[1:], strict=False):
                z = left + (right - left) * (PLACES + 1) / 2
                density = np.exp(np.asarray(log_density(law, z)))
                total += float(np.sum(WEIGHTS * density) * (right - left) / 2)
            assert shares[place + 1] == pytest.approx(total, abs=1e-7)
    assert shares.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.slow
def test_prior_draws_of_every_part_can_be_checked():
    found = assemble(people(60), "sick ~ hours + ever + (1 | clinic)")
    sites = prior_sites(found, 1, 80)
    after = {name: values[None] for name, values in sites.items()}
    assert isinstance(checked(found, sites, after, 2), Predictive)
