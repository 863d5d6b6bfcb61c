"""Have a ratio quoted as what it is not: one at age 0, an interaction, a contrast, half of a polynomial.

Defence: The analysis: sentences and names say where the other columns are, a number at its mean, and what a
ratio of odds ratios is; what has no plain meaning is left out.
"""

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.odds import ratios_of
from inference.analyses.table import known_channel, table_of
from tests.inference.analyses.simulated import table

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]


def said(formula):
    """{coefficient: its sentence}, of those with one."""
    law = assemble(table(200), formula).law
    names = [law.names()[column][0] for column in law.columns]
    return {name: one.words("O") for name, one in zip(names, ratios_of(law), strict=True) if one}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (
            "ever ~ region * age",
            {
                "region[north]": "odds ratio of O for region = north, where age is 40.15",
                "age": "odds ratio of O for one more of age, where region is east",
                "region:age[north]": "ratio of odds ratios of O for region = north and one more of age",
            },
        ),
        (
            "ever ~ age * `cov.size` * died",
            {
                "age": "odds ratio of O for one more of age, where cov.size is 1.02 and died is 0",
                "cov.size": "odds ratio of O for one more of cov.size, where age is 40.15 and died is 0",
                "age:died": "ratio of odds ratios of O for one more of age and one more of died, "
                "where cov.size is 1.02",
                "age:cov.size:died": "ratio of ratios of odds ratios of O for one more of age and one more "
                "of cov.size and one more of died",
            },
        ),
        (
            "ever ~ region * smokes",
            {
                "region[west]": "odds ratio of O for region = west, where smokes is no",
                "smokes[yes]": "odds ratio of O for smokes = yes, where region is east",
            },
        ),
        (
            "ever ~ region + region:age",
            {"region:age[east]": "odds ratio of O for one more of age, where region is east"},
        ),
        (
            "ever ~ C(region, contr.treatment('west')) * died",
            {
                "died": "odds ratio of O for one more of died, "
                "where C(region, contr.treatment('west')) is west"
            },
        ),
        (
            "ever ~ C(region, contr.sum) + age",
            {
                "C(region, contr.sum)[north]": "odds ratio of O for C(region, contr.sum) = north against the "
                "mean of all levels",
                "age": "odds ratio of O for one more of age",
            },
        ),
        (
            "ever ~ region * (age + I(age**2))",
            {"region[north]": "odds ratio of O for region = north, where age is 40.15"},
        ),
    ],
)
def test_a_ratio_says_what_it_is(formula, expected):
    found = said(formula)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("formula", "without"),
    [
        ("ever ~ I(age / 10) + I((age / 10)**2)", ["I(age / 10)", "I((age / 10) ** 2)"]),
        ("ever ~ region * (age + I(age**2))", ["age", "I(age ** 2)", "region:age[north]"]),
        ("ever ~ region * (age + np.log(age))", ["region[north]", "age"]),
        ("ever ~ 0 + region + died", ["region[east]", "region[north]"]),
        ("ever ~ C(region, contr.helmert) * died", ["C(region, contr.helmert)[north]", "died"]),
        ("ever ~ region * bs(age, df=4)", ["bs(age, df=4)[1]", "region[north]"]),
    ],
)
def test_what_is_no_ratio_of_one_change_is_left_out(formula, without):
    assert not set(without) & set(said(formula))


@pytest.mark.slow
def test_the_ratio_is_that_of_the_place_that_its_name_and_sentence_say():
    random = np.random.default_rng(0)
    age, south = random.integers(60, 81, 1000), random.random(1000) < 0.5
    frame = pd.DataFrame({"region": np.where(south, "south", "north"), "age": age.astype(float)})
    whole = table_of(frame, [known_channel("armed", ["no", "yes"], random.integers(0, 2, 1000), FORCED)])
    found = analyse_table(whole, "armed ~ region * age", method="laplace", draws=300)
    (one,) = [one for one in found.quantities if one.name.startswith("odds ratio region[south]")]
    shown = one.name.removeprefix("odds ratio region[south], age = ")
    assert one.words.endswith(f"for region = south, where age is {shown}")
    expected = found.draws["region[south]"] + age.mean() * found.draws["region:age[south]"]
    np.testing.assert_allclose(np.log(one.draws), expected, rtol=1e-6, atol=1e-6)
    assert float(shown) == pytest.approx(age.mean(), abs=0.01 * age.std())
    assert "odds ratio age" in [one.name for one in found.quantities]
