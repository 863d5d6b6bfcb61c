"""Cells of a study: combinations of public values, each of which may have its own summary."""

from ldp_client import mechanisms_of
from schemas import Study
from summaries import noise_tails
from summaries.reductions import REDUCTIONS

# One value of each public field, in the study's order.
Cell = tuple[str, ...]

MOST_CELLS = 4096
# The most over all cells together: 8 MiB.
MOST_VALUES = 1 << 20


def keeps_cells(study: Study) -> bool:
    """Tell whether summaries of a study are kept by cell: it has some, not too many, and not too large."""
    return bool(study.public) and study.cells <= MOST_CELLS and study.cells * cell_size(study) <= MOST_VALUES


def cell_size(study: Study) -> int:
    """Count the integers that the summaries of one cell's questions take."""
    return sum(
        1 + REDUCTIONS[one.name].size(one) + (noise_tails.SIZE if noise_tails.has_tails(one) else 0)
        for one in mechanisms_of(study).values()
    )


def cell_at(study: Study, number: int) -> Cell:
    """Give the cell of this number, from 0; the last field's values are next to each other."""
    values = []
    for field in reversed(study.public):
        number, place = divmod(number, field.size)
        values.append(field.value(place))
    return tuple(reversed(values))
