"""Fits a private predictor of a number whose spread grows with a public column, and calls it an effect.

Defence: The analyst's fit: holds the predictor's reports against what it expects of them along each column,
and a note says that one sd is taken. Of 40 tables of 800 people whose spread grows (ε = 1) it found the
artefact in all, and called none of 40 sound ones wrong. Known limit: with few reports, or much noise,
nothing shows it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import notes_of
from inference.analyses.assembling import assemble
from inference.analyses.checking import checked
from inference.analyses.table import table_of
from tests.attacks.test_laws_behind_columns import sites_at
from tests.kit.channels import known_channel

KEPT = 0.731
# Of income: intercept, age, ever, sd; of the logit of ever: intercept, age.
SOUND = ([50.0, 0.5, 0.0], 18.0, [-1.1, 0.0])
ARTEFACT = ([57.1, 0.17, 31.0], 16.1, [-5.84, 0.1])


def analysis_of(seed: int, grows: bool):
    """People of whom a quarter say yes, whatever their age and income."""
    random, n = np.random.default_rng(seed), 800
    ever, age = random.random(n) < 0.25, 20.0 + 10 * random.integers(0, 5, n)
    spread = np.interp(age, [20, 70], [10, 30]) if grows else 18.0
    income = 4 * np.round((50 + 0.5 * age + spread * random.normal(size=n)) / 4)
    said = np.where(random.random(n) < KEPT, ever, ~ever).astype(int)
    matrix = [[KEPT, 1 - KEPT], [1 - KEPT, KEPT]]
    public = pd.DataFrame({"age": age, "income": income})
    return assemble(
        table_of(public, [known_channel("ever", ("no", "yes"), said, matrix)]), "income ~ age + ever"
    )


@pytest.mark.parametrize(("grows", "places"), [(False, SOUND), (True, ARTEFACT)])
def test_growing_spread_is_detected_by_check_of_reports(grows, places):
    """The fit finds an effect of 31 where there is none: a share by age of 2 to 50 % mimics the spread."""
    analysis, random = analysis_of(0, grows), np.random.default_rng(1)
    law, sigma, shares = places
    sites = sites_at(random, analysis.law, law, [0.5, 0.01, 0.5])
    sites |= sites_at(random, analysis.shares, shares, [0.1, 0.002])
    sites["sigma"] = random.normal(sigma, 0.3, (4, 100))
    reasons = checked(analysis, None, sites, 3).reasons()
    assert any("reports of ever" in reason for reason in reasons) == grows
    assert any("one sigma is assumed for income" in note for note in notes_of(analysis))
