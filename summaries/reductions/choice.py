"""Reports of one choice: counts of the reported choices, or of how often each choice was supported.

A report supports a set of choices (METHODS 3.2b). With few choices the sets themselves are counted, which
loses nothing; with many, the reports that support each choice. If there are only few different reports (a
choice, a column of a Hadamard matrix), the reports themselves are counted. One report of a memoized mechanism
is a report of the mechanism that it memoizes, with other probabilities.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.olh import PRIME, SEED_BYTES, Olh
from ldp_client.mechanisms.subset_selection import SubsetSelection
from summaries.reductions.base import Counted, Payloads, Reduction, Values, big_endian, counting, counts_all

# Up to this many choices, supported sets are counted as whole bit patterns.
MOST_PATTERN_CHOICES = 12
# Hashes of so many choices and reports are computed at once: a few megabytes.
HASHES_AT_ONCE = 1 << 18


choices_of = attrgetter("choices")


def keeps_patterns(choices: int) -> bool:
    """Return True if the sets of so many choices are kept as patterns (exact), not as column sums."""
    return choices <= MOST_PATTERN_CHOICES


def pattern_bits(choices: int) -> NDArray[np.float64]:
    """Return the bits of every pattern, in the order of the counts, shape (2**choices, choices)."""
    return ((np.arange(1 << choices)[:, None] >> np.arange(choices)) & 1).astype(np.float64)


def _set_size(mechanism: ChoiceMechanism) -> int:
    return 1 << mechanism.choices if keeps_patterns(mechanism.choices) else mechanism.choices


def _unary_counts(mechanism: ChoiceMechanism, payloads: Payloads) -> Values:
    choices = mechanism.choices
    if not keeps_patterns(choices):
        return column_sums(payloads, choices)
    pattern = np.zeros(len(payloads), dtype=np.int64)
    for place, column in enumerate(payloads.T):
        pattern |= column.astype(np.int64) << (8 * place)
    return np.bincount(pattern, minlength=1 << choices).astype(np.int64)


def _sets_possible(mechanism: ChoiceMechanism, n: int, values: Values) -> bool:
    if keeps_patterns(mechanism.choices):
        return counts_all(mechanism, n, values)
    return bool((values >= 0).all() and (values <= n).all())


def _subset_possible(mechanism: SubsetSelection, n: int, values: Values) -> bool:
    """Return True if the counts are possible: every report supports `size` choices."""
    possible = _sets_possible(mechanism, n, values)
    if keeps_patterns(mechanism.choices):
        others = pattern_bits(mechanism.choices).sum(axis=1) != mechanism.size
        return possible and not values[others].any()
    return possible and int(values.sum()) == n * mechanism.size


def hash_supports(olh: Olh, payloads: Payloads) -> NDArray[np.bool_]:
    """Return which choices hash to each report's value, shape (n, k)."""
    seeds = np.ascontiguousarray(payloads[:, :SEED_BYTES]).view(">u4").astype(np.int64)
    choices = np.arange(olh.choices)
    hashed = seeds[:, :1] * choices + seeds[:, 1:2]
    hashed %= PRIME
    hashed *= choices
    hashed += seeds[:, 2:]
    hashed %= PRIME
    hashed %= olh.hashes
    return np.asarray(hashed == big_endian(payloads[:, SEED_BYTES:])[:, None])


def _hash_counts(mechanism: Olh, payloads: Payloads) -> Values:
    choices = mechanism.choices
    total = np.zeros(_set_size(mechanism), dtype=np.int64)
    step = max(1, HASHES_AT_ONCE // choices)
    for start in range(0, len(payloads), step):
        supports = hash_supports(mechanism, payloads[start : start + step])
        if keeps_patterns(choices):
            total += np.bincount(supports @ (1 << np.arange(choices)), minlength=len(total))
        else:
            total += supports.sum(axis=0)
    return total


def _as_sent(_mechanism: Mechanism, payloads: Payloads) -> Payloads:
    return payloads


def support_sets(choice: ChoiceMechanism, payloads: Payloads) -> Payloads:
    """Return the packed sets that payloads support, from the mechanism's `supported`, each read once."""
    distinct, where = np.unique(payloads, axis=0, return_inverse=True)
    sets = [[choice.supported(bytes(one), index) for index in range(choice.choices)] for one in distinct]
    bits = np.asarray(sets, dtype=np.uint8).reshape(len(distinct), choice.choices)
    return np.packbits(bits, axis=1, bitorder="little")[where.ravel()]


def _keeps_sets(mechanism: ChoiceMechanism) -> bool:
    return not keeps_patterns(mechanism.choices)


def _support_counts(mechanism: ChoiceMechanism, payloads: Payloads) -> Values:
    if _keeps_sets(mechanism):
        return np.zeros(0, dtype=np.int64)
    return _unary_counts(mechanism, support_sets(mechanism, payloads))


def _always(what: Counted) -> Callable[[Mechanism], Counted]:
    return lambda _mechanism: what


INDEX_COUNTS = counting(choices_of, counts=_always("choices"), sets=support_sets)
COLUMN_COUNTS = counting(attrgetter("columns"), counts=_always("columns"), sets=support_sets)
UNARY_COUNTS = Reduction(_set_size, _unary_counts, _sets_possible, counts=_always("bits"), sets=_as_sent)
SUBSET_COUNTS = Reduction(
    _set_size, _unary_counts, _subset_possible, counts=_always("subsets"), sets=_as_sent
)
HASH_COUNTS = Reduction(
    _set_size,
    _hash_counts,
    _sets_possible,
    counts=_always("bits"),
    sets=lambda one, payloads: np.packbits(hash_supports(one, payloads), axis=1, bitorder="little"),
    hashes=choices_of,
)
# For any mechanism for choices, exactly, from its `supported` alone.
SUPPORTS = Reduction(
    lambda mechanism: 0 if _keeps_sets(mechanism) else _set_size(mechanism),
    _support_counts,
    counts_all,
    _keeps_sets,
    counts=_always("sets"),
    sets=support_sets,
    hashes=choices_of,
)


_MEMOIZED = {"randomized_response": INDEX_COUNTS, "sue": UNARY_COUNTS}


def _of_memoized(part: str) -> Callable[..., Any]:
    """Return a part of the reduction of the mechanism that a memoized mechanism repeats."""
    return lambda mechanism, *rest: getattr(_MEMOIZED[mechanism.of], part)(mechanism, *rest)


MEMOIZED = Reduction(*map(_of_memoized, ("size", "reduce", "possible", "keeps_reports", "counts", "sets")))


# A byte holds the sum of so many bits.
MOST_IN_BYTE = 255
# Bits at a time: one byte each, they stay in the processor's cache.
BITS_AT_ONCE = 1 << 19


def column_sums(rows: NDArray[np.uint8], columns: int) -> NDArray[np.int64]:
    """Return the sums (columns,) of the bits of rows (n, bytes), lowest bit of the first byte first."""
    total = np.zeros(columns, dtype=np.int64)
    step = min(MOST_IN_BYTE, 1 + BITS_AT_ONCE // columns)
    for start in range(0, len(rows), step):
        bits = np.unpackbits(rows[start : start + step], axis=1, bitorder="little", count=columns)
        total += bits.sum(axis=0, dtype=np.uint8)
    return total
