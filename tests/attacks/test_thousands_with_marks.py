"""Write 1.200 for twelve hundred: in a census or a table it was read as one and a fifth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.analyses.survey import load_survey
from inference.analyses.table import Table
from ldp_client.documents.errors import InputError
from tests.attacks.test_slips_in_a_census import asked, census_of, said

DESIGN = {
    "format": "ldpkit.design/1",
    "columns": {
        "armed": {"design": "forced", "yes": "1/6", "no": "1/6", "reports": ["no", "yes"]},
    },
}


def load(folder: Path, ages: Callable[[int], str]) -> Table:
    (folder / "design.json").write_text(json.dumps(DESIGN))
    rows = "".join(f'{"yes" if row % 3 else "no"},"{ages(row)}"\n' for row in range(60))
    (folder / "table.csv").write_text("armed,income\n" + rows)
    return load_survey(str(folder / "table.csv"), str(folder / "design.json"), "armed ~ income")[0]


@pytest.mark.parametrize("rows", ["south,1.200\nwest,2.400\n", 'south,"1,200"\nwest,"2,400"\n'])
def test_marks_between_thousands_are_refused_in_a_census(rows: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the census: column count .* which may be 1200 or not"):
        said(asked(), "armed ~ region", census_of(tmp_path, "north,950\n" + rows))


def test_marks_between_thousands_are_refused_in_tables(tmp_path: Path) -> None:
    """All numbers that have one have three digits behind it, and no number shows that these are decimals."""
    for shown in (
        lambda row: f"{1 + row % 9}.250",
        lambda row: "1.200.000" if row % 2 else "900",
        lambda row: f"{row}.250" if row else "NA",
    ):
        with pytest.raises(InputError, match="column income has numbers such as"):
            load(tmp_path, shown)
    for plain in (
        lambda row: f"{row % 9}.250",
        lambda row: f"{1 + row % 9}.25",
        lambda row: "1200" if row else "1.250",
        lambda row: str(900 + row),
    ):
        assert load(tmp_path, plain).n == 60
