"""No two results of an analysis have one name, so that none is told as another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.table import Private, Table, table_of
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import table
from tests.kit.channels import known_channel, open_share
from tests.kit.errors import raises

ROWS = 120
NUMBERS: list[object] = []
YES = {"ever": ("no", "yes")}
PARTNER = {**YES, "partner": ("no", "yes")}
BOTH = "ever ~ partner + age + partner_age"


def people(public: dict[str, Any], private: dict[str, Sequence[str]]) -> Table:
    """Public columns of these values, numbers where there are none, and private ones of these answers."""
    random = np.random.default_rng(3)
    frame = {
        name: random.choice(list(values), ROWS) if len(values) else random.normal(size=ROWS)
        for name, values in public.items()
    }
    return table_of(pd.DataFrame(frame), [column(name, labels) for name, labels in private.items()])


def column(name: str, answers: Sequence[str]) -> Private:
    matrix = np.full((len(answers), len(answers)), 0.1 / (len(answers) - 1))
    np.fill_diagonal(matrix, 0.9)
    return known_channel(name, answers, np.arange(ROWS) % len(answers), matrix)


# Public columns, private ones, formula, and the name that two results would have.
CLASHES = [
    ({"age": NUMBERS, "partner_age": NUMBERS}, PARTNER, BOTH, "partner_age"),
    ({"sigma": NUMBERS, "count": [1, 2, 3]}, YES, "count ~ ever + sigma", "sigma"),
]  # fmt: skip


@pytest.mark.attack(17)
@pytest.mark.parametrize(("public", "private", "formula", "name"), CLASHES)
def test_two_results_of_one_name_are_rejected(public, private, formula, name):
    """A column or label has the name that the analysis would give to another result."""
    with raises(InputError, "result.duplicate_name", name):
        assemble(people(public, private), formula)


def test_renamed_term_follows_the_rule():
    table = people({"age": NUMBERS, "partner_age": NUMBERS, "Intercept": NUMBERS}, PARTNER)
    names = assemble(table, "ever ~ partner + age + I(partner_age)").axes()
    assert {"partner_age[yes]", "partner_I(partner_age)[yes]"} <= set(names)
    with raises(InputError, "result.duplicate_name", "Intercept"):
        assemble(table, "ever ~ Intercept")


@pytest.mark.attack(17)
def test_open_shares_of_one_name_are_rejected():
    """Share c of ever_b and share b_c of ever get one name."""
    age, codes = pd.DataFrame({"age": np.arange(ROWS) % 7}), np.arange(ROWS) % 2
    columns = [open_share("ever", codes, "ever_b_c"), open_share("ever_b", codes, "ever_b_c")]
    table = table_of(age, columns)
    with raises(InputError, "result.duplicate_name", "ever_b_c"):
        assemble(table, "ever ~ ever_b + age")


def test_names_of_choices_groups_and_thresholds_match_bambi():
    found = assemble(table(), "mood ~ job + (age | clinic)")
    axes = found.axes()
    assert axes["threshold[low]"].coordinates == {"threshold_dim": "low"}
    assert axes["1|clinic[2]"].coordinates == {"clinic__factor_dim": "2"}
    assert axes["job[teacher]"].coordinates == {"job_dim": "teacher"}
    assert {"1|clinic_sigma", "age|clinic_sigma"} <= set(found.priors())
