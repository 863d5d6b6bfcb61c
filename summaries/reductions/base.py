"""What a reduction is: from the payloads of one mechanism to integers that add up over reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client.mechanisms.base import Mechanism

Payloads = NDArray[np.uint8]
Values = NDArray[np.int64]


def _never(_mechanism: Mechanism) -> bool:
    return False


class Reduction(NamedTuple):
    """size: how many values. reduce: payload bytes of n reports, shape (n, bytes) -> values, their sum.

    possible: whether values can be those of n reports. keeps_reports: whether a posterior needs the
    reports themselves, because no summary of fixed size is exact.
    """

    size: Callable[[Mechanism], int]
    reduce: Callable[[Mechanism, Payloads], Values]
    possible: Callable[[Mechanism, int, Values], bool]
    keeps_reports: Callable[[Mechanism], bool] = _never


def signed(payloads: Payloads) -> NDArray[np.int32]:
    """The integers of `pack_signed`, shape (n, bytes / 4)."""
    return np.ascontiguousarray(payloads).view(">i4").astype(np.int32)


def counts_all(_mechanism: Mechanism, n: int, values: Values) -> bool:
    """Whether counts are those of n reports, each in exactly one cell."""
    return bool(values.min() >= 0) and int(values.sum()) == n
