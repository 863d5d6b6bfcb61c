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
    if not study.public or study.cells > MOST_CELLS:
        return False
    size = 0
    for mechanism in mechanisms_of(study).values():
        size += 1 + REDUCTIONS[mechanism.name].size(mechanism)
        size += noise_tails.SIZE if noise_tails.has_tails(mechanism) else 0
    return study.cells * size <= MOST_VALUES


def cell_at(study: Study, number: int) -> Cell:
    """Give the cell of this number, from 0; the last field's values are next to each other."""
    values = []
    for field in reversed(study.public):
        number, place = divmod(number, field.size)
        values.append(field.value(place))
    return tuple(reversed(values))
