"""Terms that look at other rows, as `age - age.mean()`: rows are patterns, and a census has others; inf."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from inference.analyses.design_file import read_design
from inference.analyses.matrices import again, matrix_of
from inference.analyses.survey import survey_of
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

# Most people are 70; of patterns, which stand once each, the mean is 40.
PATTERNS = pd.DataFrame({"age": [20.0, 30.0, 70.0], "region": pd.Categorical(["n", "s", "n"])})
SIZES = np.array([1, 1, 998])


@pytest.mark.parametrize(
    "term",
    [
        "I(age - age.mean())",
        "I((age - np.mean(age)) / np.std(age))",
        "I(age / age.std())",
        "I(age > age.median())",
        "I(age.rank())",
        "np.cumsum(age)",
        "{age - age.mean()}",
        "region + I(age - age.max())",
    ],
)
def test_term_that_depends_on_other_rows_is_rejected(term: str) -> None:
    with raises(InputError, "formula.term_depends_on_rows"):
        matrix_of(term, PATTERNS, sizes=SIZES)


@pytest.mark.parametrize(
    "term",
    ["center(age)", "scale(age)", "poly(age, 2)", "bs(age, df=4)", "np.log(age)", "I(age**2) + C(region)"],
)
def test_term_of_single_row_is_same_in_any_census(term: str) -> None:
    matrix = matrix_of(term, PATTERNS, sizes=SIZES)
    for row in range(len(PATTERNS)):
        np.testing.assert_allclose(again(matrix, PATTERNS[row : row + 1])[0], matrix.values[row], atol=1e-9)


def test_infinity_in_number_column_is_rejected() -> None:
    forced = {"design": "forced", "yes": "1/6", "no": "1/6", "reports": ["no", "yes"]}
    design = read_design(json.dumps({"format": "ldpkit.design/1", "columns": {"armed": forced}}))
    frame = pd.DataFrame({"armed": ["no", "yes"] * 30, "age": [*map(str, range(20, 79)), "inf"]})
    with raises(InputError, "table.numbers_and_words", "age", "60 'inf"):
        survey_of(frame, design, ["armed", "age"])
