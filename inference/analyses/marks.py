"""Codes read from text of which two are the same number, such as 1.1 and 1.10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ldp_client.documents.errors import InputError

# The frame attribute that keeps, by column, two differently written cells that are the same number.
ALIKE = "ldpkit.alike"


def alike(columns: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Return, by column, two cells that are the same number, such as 1.1 and 1.10, if there are any."""
    found = {name: _alike(cells) for name, cells in columns.items()}
    return {name: pair for name, pair in found.items() if pair}


def _alike(cells: Iterable[str]) -> tuple[str, str] | None:
    seen: dict[float, str] = {}
    for cell in dict.fromkeys(one.strip().lstrip("+") for one in cells):
        try:
            first = seen.setdefault(float(cell), cell)
        except ValueError:
            continue
        if first != cell:
            return first, cell
    return None


def two_codes(name: str, first: str, other: str) -> str:
    """Describe the fault of a column of codes, of which two are the same number."""
    return (
        f"column {name} has {first} and {other}, the same number in two spellings: write both the "
        f"same way or, if they are codes, put a letter before each (c{first})"
    )


def refuse_alike(pairs: Mapping[str, tuple[str, str]], levels: Iterable[str | None], lead: str = "") -> None:
    """Raise InputError for a column of levels, two of whose codes were read as the same number."""
    for name in levels:
        if name is not None and name in pairs:
            raise InputError(lead + two_codes(name, *pairs[name]), code="table.two_codes_one_number")
