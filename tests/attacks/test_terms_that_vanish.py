"""Write terms that vanish, as `ill ~ x` of one level or `ill ~ -age`: the analysis was made without them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.matrices import matrix_of, terms_of
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

ROWS = pd.DataFrame(
    {
        "age": [20.0, 30.0, 70.0, 50.0],
        "sex": ["f", "m", "f", "m"],
        "region": ["north", "north", "south", "south"],
        "x-1": [1.0, 0.0, 3.0, 2.0],
        "one": ["north"] * 4,
    }
)
COLUMNS = {"age", "sex", "`x-1`"}
NUMBERS = {"age", "`x-1`"}


def columns(side: str) -> list[str]:
    return list(matrix_of(side, ROWS, sizes=np.ones(4, np.int64)).names)


@pytest.mark.parametrize("side", ["one", "one + age", "C(one)", "age * one", "{one}"])
def test_a_text_of_one_level_is_refused_as_a_constant_number_is(side: str) -> None:
    with raises(InputError, "formula.one_level_factor", "one"):
        columns(side)


def test_a_product_with_one_level_is_named() -> None:
    with raises(InputError, "formula.one_level_factor", "region:one, or a factor of it"):
        columns("region + region:one")
    # These have a column, which is age's and the intercept's.
    assert columns("one:age") == ["Intercept", "one:age[north]"]
    assert columns("0 + one") == ["one[north]"]


@pytest.mark.parametrize(
    ("side", "name"),
    [
        ("-age", "age"),
        ("age - sex", "sex"),
        ("age - (sex + age)", "sex"),
        ("sex + age - sex:age", "sex:age"),
        ("region + (age - sex)", "sex"),
        ("region + (-age)", "age"),
        ("age - `x-1`", "`x-1`"),
        ("-x-1 + age", "`x-1`"),
        ("age - C(sex)", "C(sex)"),
        ("age - I(age**2)", "I(age ** 2)"),
    ],
)
def test_a_minus_that_takes_nothing_away_is_refused(side: str, name: str) -> None:
    with pytest.raises(InputError) as caught:
        columns(side)
    said = f"the formula takes away {name}, which is no term before it: leave it out"
    found, _, other = str(caught.value).partition(", or ")
    assert found == said
    assert other == (f"write I(-{name}) where {name} is a number" if name in COLUMNS else "")
    if name in NUMBERS:
        assert len(columns(f"I(-{name})")) == 2
    with raises(InputError, "formula.nothing_to_take_away", "takes away"):
        terms_of(side, list(ROWS.columns))


@pytest.mark.parametrize("side", ["(age - 1) + sex", "(-1 + age) + sex", "(0 + age) + sex", "age - 1 - 1"])
def test_an_intercept_is_not_taken_away_within_brackets(side: str) -> None:
    with raises(
        InputError,
        "formula.nothing_to_take_away",
        "takes away an intercept that is not there: write - 1 once",
    ):
        columns(side)


@pytest.mark.parametrize(
    ("side", "names"),
    [
        ("age - 1", ["age"]),
        ("0 + age", ["age"]),
        ("-1 + age", ["age"]),
        ("age + 0 + 1", ["Intercept", "age"]),
        ("+ age", ["Intercept", "age"]),
        ("sex * age - age:sex", ["Intercept", "sex[m]", "age"]),
        ("(age + sex)**2 - sex:age", ["Intercept", "age", "sex[m]"]),
        ("I(-age)", ["Intercept", "I(-age)"]),
        ("x-1", ["Intercept", "x-1"]),
    ],
)
def test_what_takes_a_term_away_does_so(side: str, names: list[str]) -> None:
    assert sorted(columns(side)) == sorted(names)
