"""Convert an answer to integers on the study's grid, clamped to its bounds. Noise is added only after this.

Floats end here: a rounding error moves an answer by less than a grid step and can never leave
the grid. Missing values, NaN, infinity and booleans are rejected before any noise: no grid point represents
a missing answer.
"""

from math import isqrt
from typing import Any

from ldp_client.documents.errors import AnswerError

# A pair of floats or of Rationals.
Bounds = Any

# A scaled feature or response of 1 is 2**UNIT_BITS.
UNIT_BITS = 20
UNIT = 1 << UNIT_BITS


def as_float(value: Any, field: str) -> float:
    """Return the number as a float: infinite for an integer beyond all floats. Raises as `grid_index`."""
    # Nearly all values are float or int. Check other types more closely.
    if type(value) not in (float, int):
        if value is None:
            raise AnswerError.say("core.missing", field)
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind in ("m", "M"):
            # NumPy converts some times to their unit: four hours would be 14,400,000,000,000.
            raise AnswerError.say("core.times", field)
        # NumPy's booleans and complex numbers have a __float__ too.
        if isinstance(value, bool) or not hasattr(value, "__float__") or kind in ("b", "c"):
            raise AnswerError.say("core.number", field)
    try:
        number = float(value)
    except OverflowError:
        # An integer beyond all floats is beyond any bounds.
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        raise AnswerError.say("core.number", field) from None
    if number - number != 0:
        raise AnswerError.say("core.infinite" if number == number else "core.missing", field)
    return number


def grid_index(value: Any, bounds: Bounds, levels: int, field: str) -> int:
    """Return the nearest of the grid points 0..levels: low is the first, high the last.

    Raises AnswerError, which does not contain the value, if it is not a finite number.
    """
    # Nearly all values are finite floats. Check others more closely.
    number = value if type(value) is float and value - value == 0 else as_float(value, field)
    low, high = bounds
    if type(low) is not float:
        low, high = float(low), float(high)
    # The same steps for every answer: their time must not reveal the answer's place.
    share = (number - low) / (high - low)
    beyond = 1.0 if number >= high else share
    inside = 0.0 if number <= low else beyond
    # NaN from the arithmetic above is not an error: the missing report would reveal it.
    index = int((inside if inside == inside else 0.5) * levels + 0.5)
    return index if index < levels else levels


def signed_units(value: Any, bounds: Bounds, size: int, field: str) -> int:
    """Return the number scaled to [−1, 1] by its bounds, in units of 1/size: −size..size."""
    return grid_index(value, bounds, 2 * size, field) - size


def clip_norm(vector: list[int], radius: int) -> list[int]:
    """Return the vector, shrunk if it is longer than radius so that its L2 norm is at most radius. Exact.

    A shorter vector takes the same steps, with radius as its length.
    """
    square = sum(entry * entry for entry in vector)
    length = max(isqrt(max(square, 1) - 1) + 1, radius)
    return [entry * radius // length if entry >= 0 else -(-entry * radius // length) for entry in vector]
