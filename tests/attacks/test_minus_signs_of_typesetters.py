"""A column has a typographic minus sign, −, and each number was read as a level.

Defence: `ldpkit fit`, `ldpkit plan`: refuse the column, and say what to write.
"""

from __future__ import annotations

from io import StringIO

import pandas as pd
import pytest

from inference.analyses.public_columns import as_taken
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises


@pytest.mark.parametrize("cell", ["\u221212", "\u2013 12.5", "\uff0d3", "- 12", "\u22121\u202f000"])
def test_typographic_minus_sign_is_refused(cell: str) -> None:
    frame = pd.read_csv(StringIO(f"change\n3\n{cell}\n4.5\n"))
    with raises(InputError, "table.columns_invalid", "column change has numbers such as", f"{cell!a}"):
        as_taken(frame, ["change"])


@pytest.mark.parametrize(
    "cells", [["-12", "3"], ["\u2212", "3"], ["\u2212a", "3"], ["0\u201312", "13\u201320"]]
)
def test_other_cells_with_a_minus_sign_are_kept(cells: list[str]) -> None:
    frame = pd.DataFrame({"change": cells})
    assert list(as_taken(frame, ["change"])["change"]) == cells
