"""What a reduction is: from the payloads of one mechanism to integers that add up over reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client.mechanisms.base import Mechanism

Payloads = NDArray[np.uint8]
Values = NDArray[np.int64]


# One choice; one column of a Hadamard matrix; independent bits, one a choice; a set of a fixed size; any set.
Counted = Literal["choices", "columns", "bits", "subsets", "sets"]


def _never(_mechanism: Mechanism) -> bool:
    return False


def _no_work(_mechanism: Mechanism) -> int:
    return 0


def _nothing(_mechanism: Mechanism) -> Counted | None:
    return None


class Reduction(NamedTuple):
    """size: how many values. reduce: payload bytes of n reports, shape (n, bytes) -> values, their sum.

    possible: whether values can be those of n reports. keeps_reports: whether a posterior needs the
    reports themselves, because no summary of fixed size is exact. counts: of a choice, what its reports stand
    for, from which its likelihood follows. sets: of a choice, the packed sets of choices that payloads stand
    for, shape (n, ceil(choices / 8)), choice j in bit j % 8 of byte j // 8. hashes: how much work it is to
    reduce one report beside reading it, in hashes of 40 to 100 ns.
    """

    size: Callable[[Mechanism], int]
    reduce: Callable[[Mechanism, Payloads], Values]
    possible: Callable[[Mechanism, int, Values], bool]
    keeps_reports: Callable[[Mechanism], bool] = _never
    counts: Callable[[Mechanism], Counted | None] = _nothing
    sets: Callable[[Mechanism, Payloads], Payloads] | None = None
    hashes: Callable[[Mechanism], int] = _no_work


def signed(payloads: Payloads) -> NDArray[np.int32]:
    """The integers of `pack_signed`, shape (n, bytes / 4)."""
    return np.ascontiguousarray(payloads).view(">i4").astype(np.int32)


def big_endian(payloads: Payloads) -> Values:
    """The whole number that each payload's bytes are, shape (n,)."""
    number = np.zeros(len(payloads), dtype=np.int64)
    for column in payloads.T:
        number = number * 256 + column
    return number


def counts_all(_mechanism: Mechanism, n: int, values: Values) -> bool:
    """Whether counts are those of n reports, each in exactly one cell."""
    return bool(values.min() >= 0) and int(values.sum()) == n
