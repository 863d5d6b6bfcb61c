"""Numbers are read as levels, or one level as two: decimals, commas, text, invisible characters.

Defence: `ldpkit fit`: reads exact decimals, refuses commas, durations, dates and lists, and notes the rest.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from inference.analyses.design_file import read_design
from inference.analyses.survey import survey_of
from inference.analyses.table import Table
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

DESIGN = read_design(
    b'{"format": "ldpkit.design/1", "columns": {"armed": {"design": "forced", "yes": "1/6", "no": "1/6", '
    b'"reports": ["no", "yes"]}}}'
)
AGES = [20, 30, 40, 50, 60, 70]


def taken(values: object) -> Table:
    frame = pd.DataFrame({"armed": ["yes", "no"] * 3, "age": values})
    return survey_of(frame, DESIGN, ["armed", "age"])


def test_decimals_are_read_as_numbers() -> None:
    table = taken([Decimal(one) for one in AGES])
    assert table.public["age"].dtype == np.float64
    assert table.notes == taken(AGES).notes == ()


REFUSED = [
    ([f"{one},5" for one in AGES], ("20,5", "(c20,5)")),
    (pd.to_timedelta(AGES, unit="D"), ("durations",)),
    ([[one] for one in AGES], ("lists or records",)),
    ([{"a": one} for one in AGES], ("lists or records",)),
    (["1", 1, "a", "b", "c", "d"], ("1",)),
    (["1", 1.0, "a", "b", "c", "d"], ("1",)),
]


@pytest.mark.parametrize(("values", "facts"), REFUSED, ids=[facts[0] for _, facts in REFUSED])
def test_unsupported_column_types_are_refused_in_one_line(values: object, facts: tuple[str, ...]) -> None:
    with raises(InputError, "table.columns_invalid", "age", *facts) as error:
        taken(values)
    assert "\n" not in str(error.value)


def test_numbers_as_text_are_noted() -> None:
    assert any("holds numbers as text" in note for note in taken([str(one) for one in AGES]).notes)
    assert taken(["a", "b", "c"] * 2).notes == ()


@pytest.mark.parametrize("other", ["North", "n\u200borth", "north ", "\uff4eorth"])
def test_levels_that_look_alike_are_noted(other: str) -> None:
    (note,) = taken(["north", other, "south"] * 2).notes
    assert "look alike but count as two" in note
    (note,) = taken(pd.Categorical(["north", other, "south"] * 2)).notes
    assert "look alike" in note
    composed = taken(["caf\u00e9", "cafe\u0301", "bar"] * 2).notes
    assert len(composed) == 1
