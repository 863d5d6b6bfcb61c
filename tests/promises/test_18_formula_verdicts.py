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

# P(report | answer) of forced response with dice, and of one with more noise.
FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
LOUD = [[0.53, 0.47], [0.47, 0.53]]
PEOPLE = 4000


def answers_of(random, chances, people=PEOPLE):
    """Answers, 0 or 1, that are yes with these chances."""
    return (random.random(people) < chances).astype(np.int64)


def column(random, name, answers, channel=FORCED):
    """The reports of answers."""
    reports = answers_of(random, np.asarray(channel)[answers, 1], len(answers))
    return known_channel(name, ("no", "yes"), reports, channel)


def by_region(random, people=PEOPLE, channel=FORCED):
    """A fifth say yes in the north, and half in the south."""
    region = random.choice(["north", "south"], people)
    answers = answers_of(random, np.where(region == "north", 0.2, 0.5), people)
    return table_of(pd.DataFrame({"region": region}), [column(random, "ever", answers, channel)])


def with_predictor(random):
    ever = answers_of(random, 0.4)
    died = random.random(PEOPLE) < np.where(ever, 0.6, 0.3)
    return table_of(pd.DataFrame({"died": np.where(died, "yes", "no")}), [column(random, "ever", ever)])


def incomes(random, apart, sd):
    """Incomes of each answer are of two kinds where they are apart, and the formula's law has one."""
    ever = answers_of(random, 0.4)
    income = ever + random.choice([-apart, apart], PEOPLE) + random.normal(0, sd, PEOPLE)
    return table_of(pd.DataFrame({"income": income}), [column(random, "ever", ever)])


def crossed(random, people=PEOPLE, channel=FORCED):
    first = answers_of(random, 0.4, people)
    second = answers_of(random, np.where(first, 0.6, 0.3), people)
    both = [column(random, name, said, channel) for name, said in (("ever", first), ("again", second))]
    return table_of(pd.DataFrame({"region": random.choice(["north", "south"], people)}), both)


# Tables, and formulas over them; an empty one crosses the private columns.
BAD = {
    "30 reports that noise drowns": (lambda random: by_region(random, 30, LOUD), "ever ~ region"),
    "two kinds of income under one normal law": (lambda random: incomes(random, 6.0, 0.3), "income ~ ever"),
    "crossed questions that noise drowns": (lambda random: crossed(random, 60, LOUD), ""),
}
GOOD = {
    "two regions": (by_region, "ever ~ region"),
    "a private predictor": (with_predictor, "died ~ ever"),
    "a public number by a private answer": (lambda random: incomes(random, 0.0, 1.0), "income ~ ever"),
    "crossed questions": (crossed, ""),
}


def is_usable(name):
    """Whether `ldpkit fit` would end with 0."""
    make, formula = {**BAD, **GOOD}[name]
    table = make(np.random.default_rng(list(name.encode())))
    if not formula:
        return cross_table(table, ["ever", "again"], method="gaussian_approx", draws=400).verdict.ok
    return analyse_table(table, formula, method="gaussian_approx", draws=400).verdict.ok


@pytest.mark.parametrize("name", [*BAD, *GOOD])
def test_only_a_sound_analysis_is_called_usable(name):
    assert is_usable(name) == (name in GOOD)


def test_a_planted_verdict_that_ignores_the_model_is_found(monkeypatch):
    monkeypatch.setattr(analysing, "checked", lambda *_arguments: None)
    assert is_usable("two kinds of income under one normal law")
