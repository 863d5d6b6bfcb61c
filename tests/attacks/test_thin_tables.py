"""Tries to have an analysis quote numbers of people whom no report is of, without a word that none is.

Small tables leave much unseen: levels that a study lists and nobody has, groups and ages of a census beyond
all reports. What stands there is a prior, a groups' law or a line drawn on, and must say so, or be refused.

Defence: The analysis: says of which people what stands there is a prior, a groups' law or a line drawn on,
and refuses, with the cure, a level to compare with that nobody has and a plain factor's unseen level.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import notes_of
from inference.analyses.assembling import assemble
from inference.analyses.population import Population, notes_over, people_of
from inference.analyses.table import Table, known_channel, table_of
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

CHANNEL = [[0.9, 0.1], [0.1, 0.9]]


def small(**columns: object) -> Table:
    frame = pd.DataFrame(columns)
    reports = np.arange(len(frame)) // 3 % 2
    return table_of(frame, [known_channel("ever", ["no", "yes"], reports, CHANNEL)])


def regions(seen: list[str]) -> pd.Categorical:
    return pd.Categorical(
        [seen[place % len(seen)] for place in range(30)], categories=["north", "south", "west"]
    )


def said_over(table: Table, formula: str, **census: object) -> str:
    """What is noted of a census."""
    population = Population(census=pd.DataFrame(census))
    analysis = assemble(table, formula)
    return " ".join(notes_over(analysis, people_of(analysis, table, population), population))


def test_a_listed_group_that_nobody_reported_is_said_to_be_its_law():
    notes = notes_of(assemble(small(region=regions(["north", "south"])), "ever ~ (1 | region)"))
    assert any("no report has region west: what stands there is the groups' law" in note for note in notes)
    notes = notes_of(assemble(small(region=regions(["north", "south", "west"])), "ever ~ (1 | region)"))
    assert not any("no report has" in note for note in notes)


def test_a_level_to_compare_with_that_nobody_has_is_named_with_its_cure():
    """It was called collinear, and its columns to be left out."""
    table = small(region=regions(["south", "west"]))
    with raises(InputError, "formula.empty_reference_level", "region = north"):
        assemble(table, "ever ~ region")
    table = small(region=regions(["south", "west"]), sex=np.arange(30) % 2, age=np.arange(30.0) % 10)
    for formula in ("ever ~ region * sex", "ever ~ age + age:region", "ever ~ (region + sex) ** 2"):
        with raises(InputError, "formula.empty_reference_level", "region = north"):
            assemble(table, formula)
    cured = assemble(table, 'ever ~ C(region, contr.treatment("south"))')
    assert any("no report has" in note and "north" in note for note in notes_of(cured))
    assert assemble(table, "ever ~ 0 + region").law.empty == ("region[north]",)


def test_slopes_by_group_are_no_better_known_and_numbers_of_groups_are_no_ages():
    table = small(age=np.arange(30.0) % 10 + 20, clinic=np.arange(30) % 3)
    said = said_over(table, "ever ~ (age | clinic)", age=[95.0, 25.0], clinic=[0, 7], count=[1, 2])
    assert "2 of 3 people are in groups of clinic that no report had (7)" in said
    assert "have clinic beyond" not in said


def test_a_plain_factors_unseen_level_is_named_with_its_cure():
    """It was refused in a library's words, which spoke of casting."""
    table = small(town=[f"t{place % 3}" for place in range(30)])
    with raises(InputError, "census.rows_invalid", "town", "t9", "level"):
        said_over(table, "ever ~ town", town=["t0", "t9"], count=[1, 1])


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("ever ~ sex + same", r"the columns sex\[m\], same\[v\] say the same"),
        ("ever ~ dose + ward", "say the same"),
        ("ever ~ ward * sex", "say the same|no report has"),
    ],
)
def test_columns_that_say_the_same_are_refused_in_small_tables(formula, said):
    sex = np.where(np.arange(12) % 2, "m", "f")
    ward = np.repeat(["a", "b", "c"], 4)
    sex_of_ward = np.where(ward == "a", "f", sex)
    own = sex_of_ward if "*" in formula else sex
    table = small(sex=own, same=np.where(sex == "m", "v", "u"), dose=np.repeat([1.0, 2.0, 3.0], 4), ward=ward)
    with pytest.raises(InputError, match=said):
        assemble(table, formula)
