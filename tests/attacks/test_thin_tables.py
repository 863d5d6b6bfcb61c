"""Tries to have an analysis quote numbers about people without any report, without a note.

Small tables leave much unseen: listed levels that no report has, groups and ages of a census beyond
all reports. Their numbers come from a prior, the groups' law or an extrapolated line.
The result must say so, or be refused.

Defence: The analysis: notes for which people a number comes from a prior, a groups' law or an extrapolated
line, and refuses, with a remedy, an empty reference level and a plain factor's unseen level.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import notes_of
from inference.analyses.assembling import assemble
from inference.analyses.population import Population, notes_over, people_of
from inference.analyses.table import Table, table_of
from ldp_client.documents.errors import InputError
from tests.kit.channels import known_channel
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


def test_group_without_reports_is_noted():
    notes = notes_of(assemble(small(region=regions(["north", "south"])), "ever ~ (1 | region)"))
    assert any("no report has region west: these estimates come from" in note for note in notes)
    notes = notes_of(assemble(small(region=regions(["north", "south", "west"])), "ever ~ (1 | region)"))
    assert not any("no report has" in note for note in notes)


def test_empty_reference_level_is_rejected_with_remedy():
    """The error used to call it collinear, and advised to leave its columns out."""
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


def test_numbered_group_without_reports_is_noted_as_group():
    table = small(age=np.arange(30.0) % 10 + 20, clinic=np.arange(30) % 3)
    said = said_over(table, "ever ~ (age | clinic)", age=[95.0, 25.0], clinic=[0, 7], count=[1, 2])
    assert "2 of 3 people are in groups of clinic without reports (7)" in said
    assert "have clinic beyond" not in said


def test_unseen_factor_level_is_rejected_with_remedy():
    """The error used to be a library's, about casting."""
    table = small(town=[f"t{place % 3}" for place in range(30)])
    with raises(InputError, "census.rows_invalid", "town", "t9", "level"):
        said_over(table, "ever ~ town", town=["t0", "t9"], count=[1, 1])


@pytest.mark.parametrize(
    ("formula", "columns"),
    [
        ("ever ~ sex + same", "sex[m], same[v]"),
        ("ever ~ dose + ward", "dose"),
        ("ever ~ ward * sex", "sex[m]"),
    ],
)
def test_collinear_columns_are_rejected_in_small_tables(formula, columns):
    sex = np.where(np.arange(12) % 2, "m", "f")
    ward = np.repeat(["a", "b", "c"], 4)
    sex_of_ward = np.where(ward == "a", "f", sex)
    own = sex_of_ward if "*" in formula else sex
    table = small(sex=own, same=np.where(sex == "m", "v", "u"), dose=np.repeat([1.0, 2.0, 3.0], 4), ward=ward)
    with raises(InputError, "formula.collinear_columns", columns):
        assemble(table, formula)
