"""Reports of one choice: counts of what was reported, or of the bits that were set."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from summaries.reductions.base import Payloads, Reduction, Values, counts_all

# Up to this many choices, unary reports are kept as counts of whole bit patterns.
MOST_PATTERN_CHOICES = 12


def _choices(mechanism: Mechanism) -> int:
    return cast(ChoiceMechanism, mechanism).choices


def _index_counts(mechanism: Mechanism, payloads: Payloads) -> Values:
    index = np.zeros(len(payloads), dtype=np.int64)
    for column in payloads.T:
        index = index * 256 + column
    return np.bincount(index, minlength=_choices(mechanism)).astype(np.int64)


def keeps_patterns(choices: int) -> bool:
    """Whether unary reports of so many choices are kept as patterns (exact), not as column sums."""
    return choices <= MOST_PATTERN_CHOICES


def pattern_bits(choices: int) -> NDArray[np.float64]:
    """The bits of every pattern, in the order of the counts, shape (2**choices, choices)."""
    return ((np.arange(1 << choices)[:, None] >> np.arange(choices)) & 1).astype(np.float64)


def _unary_size(mechanism: Mechanism) -> int:
    choices = _choices(mechanism)
    return 1 << choices if keeps_patterns(choices) else choices


def _unary_counts(mechanism: Mechanism, payloads: Payloads) -> Values:
    choices = _choices(mechanism)
    if not keeps_patterns(choices):
        bits = np.unpackbits(payloads, axis=1, bitorder="little", count=choices)
        return np.asarray(bits.sum(axis=0, dtype=np.int64))
    pattern = np.zeros(len(payloads), dtype=np.int64)
    for place, column in enumerate(payloads.T):
        pattern |= column.astype(np.int64) << (8 * place)
    return np.bincount(pattern, minlength=1 << choices).astype(np.int64)


def _unary_possible(mechanism: Mechanism, n: int, values: Values) -> bool:
    if keeps_patterns(_choices(mechanism)):
        return counts_all(mechanism, n, values)
    return bool((values >= 0).all() and (values <= n).all())


INDEX_COUNTS = Reduction(_choices, _index_counts, counts_all)
UNARY_COUNTS = Reduction(_unary_size, _unary_counts, _unary_possible)
