"""Enter a public column on paper for other rows, or with labels swapped: of all people arms still agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from inference.analyses import arms
from inference.analyses.analysing import analyse_table
from inference.analyses.arms import arms_apart, arms_of_all
from inference.analyses.arms_differing import DEVICE, PAPER
from inference.analyses.assembling import assemble
from inference.analyses.crossing import cross_table
from inference.analyses.drawn_together import Clusters
from inference.analyses.joining import joined
from inference.analyses.prior_sites import prior_sites
from inference.analyses.table import Table, known_channel, table_of
from ldp_client.commands.paper import ARM

DEVICES, RECORDS = 3000, 2000
DICE = {DEVICE: [[0.88, 0.12], [0.12, 0.88]], PAPER: [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]}
SWAPPED = {"north": "south", "south": "north"}


def right(column):
    return column


def shifted(column):
    return np.roll(column, 1)


def swapped(column):
    return np.asarray([SWAPPED.get(one, one) for one in column])


def survey(
    how, seed=9, column="region", effect=0.4, sizes=(DEVICES, RECORDS), more_on_paper=0.0, names=("ever",)
):
    """Both arms of people who answer alike; a column of the paper's is as `how` has it entered.

    `ever` is 40 points more frequent in the south, and among the old; and by town, of which there are 20.
    """
    random, tables = np.random.default_rng(seed), {}
    for arm, n in zip((DEVICE, PAPER), sizes, strict=True):
        public = pd.DataFrame(
            {
                "region": random.choice(["north", "south"], n),
                "age": random.integers(36, 151, n) / 2,
                "town": random.choice([f"t{place:02}" for place in range(20)], n),
                # Of the rarest there are a dozen on paper.
                "job": random.choice(["farmer", "clerk", "smith", "sailor"], n, p=[0.6, 0.3, 0.094, 0.006]),
            }
        )
        more = {
            "region": public["region"] == "south",
            "age": public["age"] > 46,
            "town": public["town"] > "t09",
            "job": public["job"] != "farmer",
        }[column]
        share = 0.2 + effect * more + (more_on_paper * more if arm == PAPER else 0)
        asked = []
        for name in names:
            truth = (random.random(n) < share).astype(int)
            said = (random.random(n) < np.asarray(DICE[arm])[truth, 1]).astype(int)
            asked.append(known_channel(name, ("no", "yes"), said, DICE[arm]))
        if arm == PAPER:
            public[column] = how(public[column].to_numpy())
        tables[arm] = table_of(public, asked)
    return joined(tables, ARM)


def held(table: Table, formula: str, clusters: Clusters | None = None):
    """Reasons and notes, by draws of a law in which no column moves an answer."""
    analysis = assemble(table, formula)
    sites = {name: 0 * values[None] for name, values in prior_sites(analysis, 1, 50).items()}
    return arms_apart(analysis, table, sites, clusters)[1:]


@pytest.mark.parametrize("how", [shifted, swapped])
@pytest.mark.parametrize("formula", ["ever ~ region", "ever ~ age + region", "died ~ ever + region"])
def test_a_column_of_other_rows_disagrees(how, formula):
    """A slope of 27 points, or 10, where 40 are true, was ok."""
    table = survey(how)
    table.public["died"] = np.random.default_rng(1).choice(["n", "y"], len(table.public))
    (reason,), _ = held(table, formula)
    assert reason.startswith("devices and paper disagree on ever by region, most where region = ")
    assert "look whether region was entered for the right rows; if it was, name arm * region in" in reason
    assert held(survey(right), "ever ~ region") == ((), ())


@pytest.mark.parametrize(("column", "formula"), [("age", "ever ~ age"), ("town", "ever ~ (1 | town)")])
def test_numbers_are_held_in_bands_and_many_levels_together(column, formula):
    (reason,), _ = held(survey(shifted, column=column), formula)
    assert f"disagree on ever by {column}, most where {column} = " in reason
    assert held(survey(right, column=column), formula) == ((), ())


def test_each_private_column_is_held():
    reasons, _ = held(survey(shifted, names=("ever", "again")), "again ~ ever + region")
    assert [line.split(" by ")[0] for line in reasons] == [
        f"devices and paper disagree on {name}" for name in ("again", "ever")
    ]


def test_each_wave_is_held():
    """One is right; in the other labels were swapped."""
    table = joined({"a": survey(right), "b": survey(swapped, seed=10)}, "wave")
    (reason,), _ = held(replace(table, waves="wave"), "ever ~ wave + region")
    assert "disagree on ever by region where wave = b, most where region" in reason
    assert "name arm * region * wave in the formula" in reason


def test_people_drawn_together_are_held():
    """Each level alone, as clusters have people of both."""
    for how, found in ((right, 0), (swapped, 1)):
        table = survey(how)
        clusters = Clusters(np.arange(len(table.public)) % 40, "village")
        assert len(held(table, "ever ~ region", clusters)[0]) == found
    few = Clusters(np.arange(len(table.public)) // 2999, "village")
    assert "were not held against each other" in held(table, "ever ~ region", few)[1][0]


@pytest.mark.slow
def test_a_crossed_table_by_a_column_of_other_rows_disagrees():
    table = survey(swapped, names=("ever", "again"))
    crossed = cross_table(table, ["ever", "again"], by="region", method="laplace", draws=100)
    reasons = [line for line in crossed.diagnostics.verdict.model.reasons if "disagree" in line]
    assert len(reasons) == 2
    assert all("by region, most where" in line and "cross them with --by arm" in line for line in reasons)


def test_arms_that_meet_at_no_level_are_noted():
    table = survey(right)
    table.public["region"] = np.where(table.public[ARM] == PAPER, "north", "south")
    note = (
        "devices and paper were not held against each other at each level of region: too few reports of both"
    )
    assert note in held(table, "ever ~ region")[1]


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "found"), [("ever ~ arm + region", 1), ("ever ~ arm * region", 0)])
def test_what_the_formula_names_is_no_disagreement(formula, found):
    table = survey(right, more_on_paper=0.3)
    fit = analyse_table(table, formula, method="laplace", draws=100)
    assert len([line for line in fit.diagnostics.verdict.model.reasons if "disagree" in line]) == found


def test_however_many_checks_there_are_one_can_still_fail():
    """At 20,000 surveys nothing is rarer than 5 in 100,000: of 30 checks none was ever called apart."""
    table = survey(right, names=("ever",), effect=0.0, more_on_paper=0.5)
    (reason,) = arms.arms_of(table, table.private["ever"], alarm=1e-3 / 300)[1]
    assert "disagree on ever" in reason


ALARM = 0.05


def called(surveys: int, sizes: tuple[int, int], clustered: bool) -> int:
    """How many of so many surveys of arms that agree are called apart, at an alarm that can be counted."""
    apart = 0
    for seed in range(surveys):
        table = survey(right, 100 + seed, effect=0.4, sizes=sizes, column="town")
        clusters = Clusters(np.arange(len(table.public)) % 60, "village") if clustered else None
        columns, levels = list(table.private.values()), ["region", "age", "town", "job"]
        apart += bool(arms_of_all(table, columns, None, clusters=clusters, levels=levels)[1])
    return apart


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True], ids=["alone", "clustered"])
@pytest.mark.parametrize("sizes", [(3000, 2000), (2000, 200)], ids=str)
def test_arms_that_agree_are_seldom_called_apart(sizes, clustered, monkeypatch):
    """Of 200 surveys at 1 in 20 ten are expected at most, and more than 20 once in 500."""
    monkeypatch.setattr(arms, "FALSE_ALARM", ALARM)
    assert called(200, sizes, clustered) <= 20
