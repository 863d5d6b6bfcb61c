"""An analysis by a formula is never called usable where its numbers are wrong or unlearnt; a sound one is.

Tables are of a forced-response survey by dice, or of private predictors. The verdict decides the exit code of
`ldpkit survey --formula`. The tests of checks, populations and separation have more bad analyses.
"""

import numpy as np
import pandas as pd
import pytest

from inference.analyses import analysing
from inference.analyses.analysing import analyse_table
from inference.analyses.crossing import cross_table
from inference.analyses.table import table_of
from tests.kit.channels import known_channel

pytestmark = pytest.mark.filterwarnings("ignore")

NO_YES = ("no", "yes")
# P(report | answer) of forced response with dice, and of one with more noise.
FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
LOUD = [[0.53, 0.47], [0.47, 0.53]]
PEOPLE = 4000


def reported(random, answers, channel=FORCED):
    """Of each answer, 0 or 1, the report."""
    return (random.random(len(answers)) < np.asarray(channel)[answers, 1]).astype(np.int64)


def column(name, reports, channel=FORCED):
    return known_channel(name, NO_YES, reports, channel)


def regions(random, people=PEOPLE):
    return random.choice(["north", "south"], people)


def by_region(random, people=PEOPLE, channel=FORCED):
    """A fifth say yes in the north, and half in the south."""
    region = regions(random, people)
    answers = (random.random(people) < np.where(region == "north", 0.2, 0.5)).astype(np.int64)
    return table_of(
        pd.DataFrame({"region": region}), [column("ever", reported(random, answers, channel), channel)]
    )


def with_predictor(random):
    ever = (random.random(PEOPLE) < 0.4).astype(np.int64)
    died = random.random(PEOPLE) < np.where(ever, 0.6, 0.3)
    frame = pd.DataFrame({"died": np.where(died, "yes", "no")})
    return table_of(frame, [column("ever", reported(random, ever))])


def two_peaks(random):
    """Incomes of each answer are of two kinds, and the formula's law has one."""
    ever = (random.random(PEOPLE) < 0.4).astype(np.int64)
    income = ever + random.choice([-6.0, 6.0], PEOPLE) + random.normal(0, 0.3, PEOPLE)
    return table_of(pd.DataFrame({"income": income}), [column("ever", reported(random, ever))])


def one_peak(random):
    ever = (random.random(PEOPLE) < 0.4).astype(np.int64)
    income = ever + random.normal(0, 1, PEOPLE)
    return table_of(pd.DataFrame({"income": income}), [column("ever", reported(random, ever))])


def crossed(random, people=PEOPLE, channel=FORCED):
    first = (random.random(people) < 0.4).astype(np.int64)
    second = (random.random(people) < np.where(first, 0.6, 0.3)).astype(np.int64)
    both = [
        column(name, reported(random, answers, channel), channel)
        for name, answers in (("ever", first), ("again", second))
    ]
    return table_of(pd.DataFrame({"region": regions(random, people)}), both)


# Tables, and formulas over them; an empty one crosses the private columns.
BAD = {
    "30 reports that noise drowns": (lambda random: by_region(random, 30, LOUD), "ever ~ region"),
    "two kinds of income under one normal law": (two_peaks, "income ~ ever"),
    "crossed questions that noise drowns": (lambda random: crossed(random, 60, LOUD), ""),
}
GOOD = {
    "two regions": (by_region, "ever ~ region"),
    "a private predictor": (with_predictor, "died ~ ever"),
    "a public number by a private answer": (one_peak, "income ~ ever"),
    "crossed questions": (crossed, ""),
}


def is_usable(name):
    """Whether `ldpkit fit` would end with 0."""
    make, formula = {**BAD, **GOOD}[name]
    table = make(np.random.default_rng(list(name.encode())))
    if not formula:
        return cross_table(table, ["ever", "again"], method="gaussian_approx", draws=400).verdict.ok
    found = analyse_table(table, formula, method="gaussian_approx", draws=400)
    return found.verdict.ok


@pytest.mark.parametrize("name", BAD)
def test_a_bad_analysis_is_not_called_usable(name):
    assert not is_usable(name)


@pytest.mark.parametrize("name", GOOD)
def test_a_sound_analysis_is_called_usable(name):
    assert is_usable(name)


def test_a_planted_verdict_that_ignores_the_model_is_found(monkeypatch):
    monkeypatch.setattr(analysing, "checked", lambda *_arguments: None)
    assert is_usable("two kinds of income under one normal law")
