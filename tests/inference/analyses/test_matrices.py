"""Design matrices: the columns of a formula's terms, and terms that have no meaning or no column."""

import numpy as np
import pandas as pd
import pytest

from inference.analyses.matrices import again, matrix_of, variables
from inference.analyses.program import assemble
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import table
from tests.kit.errors import raises

# Most people are 70; of patterns, which stand once each, the mean is 40.
PATTERNS = pd.DataFrame({"age": [20.0, 30.0, 70.0], "region": pd.Categorical(["n", "s", "n"])})
SIZES = np.array([1, 1, 998])
ROWS = pd.DataFrame(
    {
        "age": [20.0, 30.0, 70.0, 50.0],
        "sex": ["f", "m", "f", "m"],
        "region": ["north", "north", "south", "south"],
        "x-1": [1.0, 0.0, 3.0, 2.0],
        "one": ["north"] * 4,
    }
)


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    "term", ["I(age - age.mean())", "I(age.rank())", "np.cumsum(age)", "region + I(age - age.max())"]
)
def test_term_that_depends_on_other_rows_is_rejected(term: str) -> None:
    """Rows are patterns of reports, so age.mean() would be the mean of patterns, and differ in a census."""
    with raises(InputError, "formula.term_depends_on_rows"):
        variables(term, list(PATTERNS))


@pytest.mark.parametrize("term", ["center(age)", "poly(age, 2)", "np.log(age)", "I(age**2) + C(region)"])
def test_term_of_single_row_is_same_in_any_census(term: str) -> None:
    assert "age" in variables(term, list(PATTERNS))
    matrix = matrix_of(term, PATTERNS, (), SIZES)
    for row in range(len(PATTERNS)):
        np.testing.assert_allclose(again(matrix, PATTERNS[row : row + 1])[0], matrix.values[row], atol=1e-9)


def test_transform_uses_statistics_of_reports_not_of_cells() -> None:
    found = assemble(table(), "ever ~ scale(cov.size)")
    sizes = table().public["cov.size"].to_numpy(float)
    wanted = (np.unique(sizes) - sizes.mean()) / sizes.std(ddof=1)
    assert np.allclose(found.law.matrix.values[:, 0, 1], wanted, atol=1e-12)


@pytest.mark.attack(19)
@pytest.mark.parametrize("side", ["one + age", "age * one", "{one}", "region + region:one"])
def test_term_that_vanishes_is_rejected(side: str) -> None:
    """A column with one level has no effect: the formula would be fitted without it, and not say so."""
    with raises(InputError, "formula.one_level_factor", "one"):
        matrix_of(side, ROWS, (), np.ones(4, np.int64))


@pytest.mark.parametrize(
    ("side", "names"),
    [
        ("age - 1", ["age"]),
        ("age + 0 + 1", ["Intercept", "age"]),
        ("sex * age - age:sex", ["Intercept", "age", "sex[m]"]),
        ("I(-age)", ["I(-age)", "Intercept"]),
        ("x-1", ["Intercept", "x-1"]),
        ("0 + one", ["one[north]"]),
        ("one:age", ["Intercept", "one:age[north]"]),
    ],
)
def test_minus_removes_term(side: str, names: list[str]) -> None:
    assert sorted(matrix_of(side, ROWS, (), np.ones(4, np.int64)).names) == names


def test_level_names_are_kept() -> None:
    """The "T." that formulaic adds for contrasts is removed, but not a level's own first letters."""
    frame = pd.DataFrame({"region": ["N.Korea", "Korea", "T.x"], "place": ["a]b", "a]c", "d"]})
    assert matrix_of("region", frame, (), SIZES).levels == ("", "N.Korea", "T.x")
    assert matrix_of("region * place", frame, (), SIZES).levels[3:6] == ("a]c", "d", "N.Korea, a]c")
