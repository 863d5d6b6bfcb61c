"""Write a term that vanishes, as `ill ~ x` of one level: the analysis was made without it.

Defence: `ldpkit fit`, `ldpkit plan`: refuse a term without a column. Known limit: a minus that takes
nothing away, as in `age - sex`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference.analyses.matrices import matrix_of
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


def columns(side: str) -> list[str]:
    return list(matrix_of(side, ROWS, sizes=np.ones(4, np.int64)).names)


@pytest.mark.parametrize("side", ["one", "one + age", "C(one)", "age * one", "{one}"])
def test_text_column_of_one_level_is_rejected(side: str) -> None:
    with raises(InputError, "formula.one_level_factor", "one"):
        columns(side)


def test_product_with_one_level_is_rejected_by_name() -> None:
    with raises(InputError, "formula.one_level_factor", "region:one, or a factor of it"):
        columns("region + region:one")
    # These have a column, which is age's and the intercept's.
    assert columns("one:age") == ["Intercept", "one:age[north]"]
    assert columns("0 + one") == ["one[north]"]


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
def test_minus_removes_term(side: str, names: list[str]) -> None:
    assert sorted(columns(side)) == sorted(names)
