"""Public columns become numbers or levels, and a column that might be either is refused."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inference.analyses.design_file import read_design
from inference.analyses.population import Population, people_of
from inference.analyses.program import assemble
from inference.analyses.public_columns import as_taken, notes_of
from inference.analyses.survey import survey_of
from ldp_client.documents.errors import InputError
from tests.inference.analyses.simulated import design
from tests.kit.errors import raises

DESIGN = read_design(design(armed={}))
AGES = np.arange(20, 100)
FRAME = pd.DataFrame(
    {"armed": ["no", "yes"] * 40, "age": AGES, "kids": AGES % 7, "year": 1995 + AGES % 11, "count": 1}
)


@pytest.mark.attack(17)
@pytest.mark.parametrize("kind", ["uint8", "float16", "uint8[pyarrow]"])
def test_small_integers_do_not_wrap_around(kind: str) -> None:
    """Ages come as bytes, whose squares would be wrong without a message, in tables and censuses."""
    small = FRAME.astype({"age": kind, "kids": kind, "count": kind})
    formula = "armed ~ I(age**2) + age:kids + (I(age*kids) | year)"
    found, wanted = (assemble(survey_of(frame, DESIGN), formula) for frame in (small, FRAME))
    for one, other in ((found.law, wanted.law), (found.groups[0], wanted.groups[0])):
        assert np.array_equal(one.matrix.values, other.matrix.values)
    table, over = survey_of(FRAME, DESIGN), Population(census=small[["age", "count"]])
    frame, counts = people_of(assemble(table, "armed ~ I(age**2)"), table, over)
    assert (frame["age"].dtype, counts.sum()) == (np.float64, 80)


DATES = pd.Timestamp("2026-01-01") + pd.to_timedelta(AGES, unit="D")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (DATES, "table.holds_other_values"),
        (pd.Series(DATES).astype("date32[pyarrow]"), "table.holds_other_values"),
        (pd.to_timedelta(AGES, unit="D"), "table.holds_other_values"),
        ([[one] for one in AGES], "table.holds_other_values"),
        (["1", 1] * 40, "table.holds_other_values"),
        (["2", "3", "old", "4"] * 20, "table.numbers_and_words"),
        # Long ids may be numbers in Parquet, where nobody can tell which were merged.
        ([2.0**53, 1.0] * 40, "table.too_many_digits"),
        ([2**53, 1] * 40, "table.too_many_digits"),
        ([Decimal(2**53), Decimal(1)] * 40, "table.too_many_digits"),
    ],
)
def test_cells_that_are_neither_numbers_nor_levels_are_refused(values: Any, code: str) -> None:
    frame = FRAME.assign(age=values)
    with raises(InputError, code, "column age") as error:
        survey_of(frame, DESIGN)
    assert "\n" not in str(error.value)
    assert survey_of(frame, DESIGN, ["armed", "kids"]).n == 80


def test_exact_decimals_are_numbers_and_numbers_as_text_are_noted() -> None:
    frame = pd.DataFrame({"x": [Decimal(20), None], "y": ["20", "30"]})
    assert as_taken(frame, ["x"])["x"].dtype == np.float64
    (note,) = notes_of(frame, ["y"])
    assert note.startswith("y holds numbers as text")
