"""Reductions: from the payloads of one mechanism to integers that add up over reports."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp_client.mechanisms.base import Mechanism

Payloads = NDArray[np.uint8]
Values = NDArray[np.int64]


# One choice; one column of a Hadamard matrix; independent bits, a bit per choice; a set of a fixed size; any
# set.
Counted = Literal["choices", "columns", "bits", "subsets", "sets"]


class Reduction(NamedTuple):
    """size: how many values. reduce: payload bytes of n reports, shape (n, bytes) -> values, their sum.

    possible: whether n reports can have these values. keeps_reports: whether a posterior needs the reports
    themselves, because no summary of fixed size is exact. counts: for a choice, the kind of its reports,
    which determines its likelihood. sets: for a choice, the packed sets of choices that payloads support,
    shape (n, ceil(choices / 8)), choice j in bit j % 8 of byte j // 8. hashes: how much work it is to reduce
    one report after reading it, in hashes of 40 to 100 ns. Each takes the mechanisms of its names alone.
    """

    size: Callable[[Any], int]
    reduce: Callable[[Any, Payloads], Values]
    possible: Callable[[Any, int, Values], bool]
    keeps_reports: Callable[[Any], bool] = lambda _mechanism: False
    counts: Callable[[Any], Counted | None] = lambda _mechanism: None
    sets: Callable[[Any, Payloads], Payloads] | None = None
    hashes: Callable[[Any], int] = lambda _mechanism: 0


def signed(payloads: Payloads) -> NDArray[np.int32]:
    """Decode the integers of `pack_signed`, shape (n, bytes / 4)."""
    return np.ascontiguousarray(payloads).view(">i4").astype(np.int32)


def big_endian(payloads: Payloads) -> Values:
    """Decode each payload's bytes as one whole number, shape (n,)."""
    number = np.zeros(len(payloads), dtype=np.int64)
    for column in payloads.T:
        number = number * 256 + column
    return number


def counting(size: Callable[[Any], int], **more: Any) -> Reduction:
    """Return the reduction that counts each payload, which is one of `size` whole numbers."""

    def count(mechanism: Mechanism, payloads: Payloads) -> Values:
        return np.bincount(big_endian(payloads), minlength=size(mechanism)).astype(np.int64)

    return Reduction(size, count, counts_all, **more)


def counts_all(_mechanism: Mechanism, n: int, values: Values) -> bool:
    """Return True if counts can come from n reports, each in exactly one cell."""
    return bool(values.min() >= 0) and int(values.sum()) == n
