"""A column has a typographic minus sign, −, and each number was read as a level.

Defence: `ldpkit fit`, `ldpkit plan`: refuse the column, and say what to write.
"""

from __future__ import annotations

from io import StringIO

import pandas as pd
import pytest

from inference.analyses.public_columns import as_taken
from ldp_client.documents.errors import InputError


@pytest.mark.parametrize(
    ("cell", "meant"),
    [
        ("\u221212", "-12"),
        ("\u2013 12.5", "-12.5"),
        ("\uff0d3", "-3"),
        ("- 12", "-12"),
        ("\u22121\u202f000", "-1000"),
    ],
)
def test_typographic_minus_sign_is_refused(cell: str, meant: str) -> None:
    frame = pd.read_csv(StringIO(f"change\n3\n{cell}\n4.5\n"))
    with pytest.raises(InputError) as caught:
        as_taken(frame, ["change"])
    how = "a space after the minus" if cell[0] == "-" else "a minus other than -"
    assert str(caught.value).startswith(f"column change has numbers with {how}, such as '")
    assert str(caught.value).endswith(f"which would each be a level: write {meant}")
    assert str(caught.value).isascii()


@pytest.mark.parametrize(
    "cells", [["-12", "3"], ["\u2212", "3"], ["\u2212a", "3"], ["0\u201312", "13\u201320"]]
)
def test_other_cells_with_a_minus_sign_are_kept(cells: list[str]) -> None:
    frame = pd.DataFrame({"change": cells})
    assert list(as_taken(frame, ["change"])["change"]) == cells
