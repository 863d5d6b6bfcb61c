"""Fits a law to a private number that has another one, as an outcome or a predictor: none passes for good."""

from __future__ import annotations

import numpy as np
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from tests.inference.analyses.test_number_predictors import SHARP, people


@pytest.mark.parametrize(("law", "good"), [("normal", True), ("groups", False)])
def test_a_wrong_law_of_a_predictor_is_found(law, good):
    """Parameters near the likest ones, for hours of one kind and for hours about 2 and about 9."""
    found = assemble(people(3000, SHARP, 3, law), "died ~ hours")
    places = {"normal": (5.1, 2.06, -2.0, 0.4), "groups": (5.5, 3.6, -2.0, 0.4)}[law]
    mean, sd, intercept, slope = places
    law_of = found.law
    moved = slope * law_of.spreads[0] / law_of.unrotation[0, 0]
    random = np.random.default_rng(2)
    sites = {
        "number_middle": random.normal(mean, 0.07, (4, 100, 1)),
        "number_sd": random.normal(sd, 0.05, (4, 100)),
        "law_rotated": random.normal(moved, 0.05, (4, 100, 1, 1)),
        "law_middle": random.normal(intercept + slope * law_of.middles[0], 0.05, (4, 100, 1)),
    }
    assert (not checked(found, None, sites, 3).reasons()) == good


@pytest.mark.parametrize(("law", "good"), [("normal", True), ("lognormal", False)])
def test_a_wrong_law_of_a_private_number_outcome_is_found(law, good):
    """Reports of hours by age, in eight parts of their range, at the likest mean and sd."""
    found = assemble(people(3000, SHARP, 4, law), "hours ~ 1")
    mean, sd = {"normal": (5.0, 2.07), "lognormal": (3.6, 2.6)}[law]
    random = np.random.default_rng(2)
    sites = {
        "law_middle": random.normal(mean, 0.06, (4, 100, 1)),
        "sigma": random.normal(sd, 0.05, (4, 100)),
    }
    assert (not checked(found, None, sites, 3).reasons()) == good
