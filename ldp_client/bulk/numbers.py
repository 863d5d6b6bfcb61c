"""Numbers and records: integers on the grid plus noise. Each function is a mechanism's `randomise`."""

import numpy as np

from ldp_client.bulk.noise import draw
from ldp_client.bulk.randomness import big_endian, truth_or_other
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from ldp_client.core.randomness import Source

    Integers = NDArray[np.int64]
    Payloads = NDArray[np.uint8]

LIMIT = (1 << 31) - 1
# Products in floating point are below 2**27 and within 2**-24; what lies closer to a half is done exactly.
UNSURE = 2.0**-20


def laplace(mechanism: "Any", indices: "Any", random: "Source") -> "Payloads":  # noqa: ARG001
    return _disturbed(indices, draw("laplace", len(indices), random))


def gaussian(mechanism: "Any", indices: "Any", random: "Source") -> "Payloads":  # noqa: ARG001
    return _disturbed(indices, draw("normal", len(indices), random))


def _disturbed(indices: "Any", noise: "Integers") -> "Payloads":
    return pack_signed((np.asarray(indices, np.int64) + noise)[:, None])


def gaussian_statistics(mechanism: "Any", vectors: "Any", random: "Source") -> "Payloads":
    """The upper triangles of vvᵀ in integers, plus one normal on each."""
    rows = np.asarray(vectors, np.int64)
    first, second = np.asarray(mechanism.coordinates).T
    products = np.ascontiguousarray(rows[:, first] * rows[:, second])
    multipliers = [mechanism.diagonal if i == j else mechanism.off_diagonal for i, j in mechanism.coordinates]
    noise = draw("normal", products.size, random).reshape(products.shape)
    return pack_signed(scaled(products, multipliers) + noise)


def gaussian_record(mechanism: "Any", vectors: "Any", random: "Source") -> "Payloads":
    """A normal on each entry; where the response is a yes/no, randomized response on that one."""
    rows = np.asarray(vectors, np.int64)
    entries = rows[:, :-1] if mechanism.binary else rows
    noise = draw("normal", entries.size, random).reshape(entries.shape)
    payloads = pack_signed(entries + noise)
    if not mechanism.binary:
        return payloads
    responses = truth_or_other(rows[:, -1], 2, mechanism.threshold, random)
    return np.hstack([payloads, big_endian(responses, 1)])


def scaled(products: "Integers", multipliers: "list[int]") -> "Integers":
    """(product × multiplier + ½) >> MULTIPLIER_BITS, exactly; a multiplier for each column."""
    factors = np.asarray([multiplier / (1 << MULTIPLIER_BITS) for multiplier in multipliers])
    near = products * factors + 0.5
    whole = np.floor(near)
    result: "Integers" = whole.astype(np.int64)
    unsure = np.minimum(near - whole, 1 - (near - whole)) < UNSURE
    half = 1 << (MULTIPLIER_BITS - 1)
    for row, column in np.argwhere(unsure).tolist():
        exact = int(products[row, column]) * multipliers[column]
        result[row, column] = (exact + half) >> MULTIPLIER_BITS
    return result


def pack_signed(values: "Integers") -> "Payloads":
    """Rows of signed 32-bit big-endian integers; beyond their range they saturate."""
    whole: "Any" = np.ascontiguousarray(np.clip(values, -LIMIT, LIMIT), ">i4")
    rows: "Payloads" = whole.view(np.uint8).reshape(len(values), 4 * values.shape[1])
    return rows
