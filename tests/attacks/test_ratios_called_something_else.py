"""Have a ratio quoted under a wrong meaning: one at age 0, an interaction, a contrast, half of a polynomial.

Defence: The analysis: only a column of a single term has an odds ratio; others have shares.
"""

import numpy as np
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.effects import change_of
from tests.inference.analyses.simulated import table


def said(formula):
    """{coefficient: what it is for}, where its exp is an odds ratio."""
    law = assemble(table(200), formula).law
    names = law.names()
    found = {names[place][0]: change_of(law.matrix.made, place) for place in law.columns}
    return {name: change for name, change in found.items() if change}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("ever ~ age", {"age": "one more of age"}),
        (
            "ever ~ region + age",
            {"region[north]": "region = north", "region[west]": "region = west", "age": "one more of age"},
        ),
        ("ever ~ age + region * smokes", {"age": "one more of age"}),
        ("ever ~ died + I(age / 10)", {"died": "one more of died", "I(age / 10)": "one more of I(age / 10)"}),
        ("ever ~ region * age", {}),
        ("ever ~ region + region:age", {}),
        ("ever ~ I(age / 10) + I((age / 10)**2)", {}),
        ("ever ~ died + age + np.log(age)", {"died": "one more of died"}),
        ("ever ~ 0 + region + died", {"died": "one more of died"}),
        ("ever ~ C(region, contr.sum) + C(smokes, contr.helmert)", {}),
        ("ever ~ bs(age, df=4)", {}),
    ],
)
def test_only_single_term_column_gets_odds_ratio(formula, expected):
    assert said(formula) == expected


@pytest.mark.slow
def test_an_odds_ratio_is_the_exp_of_its_coefficient():
    found = analyse_table(table(300), "ever ~ region + age", method="gaussian_approx", draws=300)
    (one,) = [one for one in found.quantities if one.name == "odds ratio age"]
    assert one.words == "odds ratio of ever = yes against no for one more of age"
    np.testing.assert_allclose(np.log(one.draws), found.draws["age"], rtol=1e-6, atol=1e-6)
