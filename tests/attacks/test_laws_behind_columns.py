"""Public columns hide a wrong distribution: one that fills the outcome's range, or a hump over many values.

Defence: The analysis: compares outcomes with what the fit expects, and people by bands of every public
column.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from inference.analyses.linear import Linear
from inference.analyses.subgroups import MOST_LEVELS, levels_or_bands
from inference.analyses.table import table_of
from tests.kit.channels import known_channel

DICE = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]


def rolled(random, truth):
    said = np.where(random.random(len(truth)) < 2 / 3, truth, random.random(len(truth)) < 0.5)
    return said.astype(int)


def sites_at(random, linear: Linear, places, error):
    """Draws (4, 100, …) of a linear predictor's sites, at these coefficients and near them."""
    near = np.asarray(places) + random.normal(size=(400, len(places))) * error
    each = [linear.sites(one[:, None]) for one in near]
    return {
        name: np.stack([one[name] for one in each]).reshape(4, 100, *value.shape)
        for name, value in each[0].items()
    }


# Of the score after: intercept, before, effect of the trait, sd; of the trait's logit: intercept, before.
SOUND = ([0.0, 1.0, 0.0], 5.0, [-3.4, 0.0])
LABELS_OF_THE_TAIL = ([-0.83, 1.003, 16.31], 3.887, [-2.607, -0.0075])


@pytest.mark.parametrize(
    ("law", "came", "good"),
    [("normal", SOUND, True), ("lognormal", SOUND, False), ("lognormal", LABELS_OF_THE_TAIL, False)],
)
@pytest.mark.parametrize("wide", [20.0, 40.0])
def test_skewed_residual_is_detected_despite_baseline_column(law, came, good, wide):
    """A rare trait without any effect was given the residual's tail: an effect of 16 at an sd of 5."""
    random, n = np.random.default_rng(0), 2000
    trait = random.random(n) < 0.03
    away = {
        "normal": random.normal(size=n),
        "lognormal": (np.exp(random.normal(0, 0.6, n)) - np.exp(0.18)) / 0.78,
    }[law]
    before = random.normal(70, wide, n).round(1)
    public = pd.DataFrame({"before": before, "after": (before + 5 * away).round(1)})
    table = table_of(public, [known_channel("ever", ("no", "yes"), rolled(random, trait), DICE)])
    analysis = assemble(table, "after ~ before + ever")
    places, sigma, shares = came
    sites = sites_at(random, analysis.law, places, [0.1, 0.001, 0.3])
    sites |= sites_at(random, analysis.shares, shares, [0.1, 0.001])
    sites["sigma"] = random.normal(sigma, 0.05, (4, 100))
    assert (not checked(analysis, None, sites, 3).reasons()) == good


@pytest.mark.parametrize(("hump", "good"), [(False, True), (True, False)])
def test_hump_over_a_numeric_column_is_detected(hump, good):
    """A straight line would be fitted through the hump and extrapolated to other ages."""
    random, n = np.random.default_rng(5), 3000
    age = np.clip(np.round(random.normal(45, 9, n)), 18, 80)
    share = 0.08 + 0.4 / (1 + np.exp(-(np.abs(age - 45) - 16) / 3)) if hump else np.full(n, 0.12)
    said = rolled(random, random.random(n) < share)
    table = table_of(pd.DataFrame({"age": age}), [known_channel("armed", ("no", "yes"), said, DICE)])
    analysis = assemble(table, "armed ~ age")
    level = 1.5 * (said.mean() - 1 / 6)
    sites = sites_at(random, analysis.law, [np.log(level / (1 - level)), 0.0], [0.05, 0.001])
    assert (not checked(analysis, None, sites, 3).reasons()) == good


@pytest.mark.parametrize("most", [3, 5, MOST_LEVELS])
def test_columns_with_many_levels_are_grouped_into_bands(most):
    """Numbers get ordered bands; of words the most frequent one keeps a level of its own."""
    random = np.random.default_rng(1)
    numbers, people = pd.Series(random.normal(size=400)), np.ones(400)
    bands = levels_or_bands(numbers, people, most)
    assert len(set(bands)) == most
    assert (np.diff(bands[np.argsort(numbers)]) >= 0).all()
    words = pd.Series(random.choice(list("abcdefghijkl"), 400, p=[0.3, *[0.7 / 11] * 11]))
    levels = levels_or_bands(words, people, most)
    assert len(set(levels)) == most
    assert len(set(levels[words == "a"])) == 1
    assert set(words[levels == levels[words == "a"][0]]) == {"a"}
