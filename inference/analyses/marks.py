"""Codes of which two are one number, such as 1.1 and 1.10, as they are read from text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inference.analyses.blanks import BLANK_CELLS
from ldp_client.documents.errors import InputError

# Where a frame keeps in which of its columns two that are written unlike are one number, with both.
ALIKE = "ldpkit.alike"


def alike(columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Of each column that has them, two cells that are one number, such as 1.1 and 1.10."""
    found = {name: _alike(cells) for name, cells in columns.items()}
    return {name: pair for name, pair in found.items() if pair}


def _alike(cells: Iterable[str]) -> tuple[str, str] | None:
    seen: dict[float, str] = {}
    for cell in dict.fromkeys(one.strip().lstrip("+") for one in cells):
        try:
            first = seen.setdefault(float(cell), cell)
        except ValueError:
            continue
        if first != cell and first.lower() not in BLANK_CELLS:
            return first, cell
    return None


def two_codes(name: str, first: str, other: str) -> str:
    """What is wrong with a column of codes of which two are one number."""
    return (
        f"column {name} has {first} and {other}, which are one number but two codes: write both the "
        f"same way, or put a letter before each where they are codes (c{first})"
    )


def refuse_alike(pairs: Mapping[str, tuple[str, str]], levels: Iterable[str | None], lead: str = "") -> None:
    """Raises InputError for a column that tells people apart, two of whose codes were read as one number."""
    for name in levels:
        if name is not None and name in pairs:
            raise InputError(lead + two_codes(name, *pairs[name]), code="table.two_codes_one_number")
