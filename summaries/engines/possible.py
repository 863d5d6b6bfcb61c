"""Which payloads are possible, for many reports at once, as each mechanism's `check` decides for one payload.

`check` accepts exactly the payloads that are possible here; a test compares the two. The other payloads are
checked again one by one, so that all refusals have the mechanism's own words.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.strips import NOISE_REACH
from ldp_client.documents.errors import ReportError
from ldp_client.mechanisms.base import LARGEST_SIGNED, Mechanism
from ldp_client.mechanisms.olh import PRIME, SEED_BYTES
from summaries.reductions.base import Payloads, big_endian, signed

Mask = NDArray[np.bool_]
# (mechanism, payloads (n, payload_size)) → which payloads are possible, (n,).
Possible = Callable[[Any, Payloads], Mask]


def possible(mechanism: Mechanism, payloads: Payloads) -> Mask:
    """Tell which payloads a device could have sent.

    Args:
        mechanism: the question's.
        payloads: n of them, shape (n, payload_size), uint8.

    Returns:
        (n,), true where the mechanism's `check` does not refuse.
    """
    return _POSSIBLE.get(mechanism.name, _one_by_one)(mechanism, payloads)


def _one_by_one(mechanism: Mechanism, payloads: Payloads) -> Mask:
    """Check the payloads of any mechanism by its `check` alone."""
    found = np.ones(len(payloads), dtype=np.bool_)
    for row, payload in enumerate(payloads):
        try:
            mechanism.check(payload.tobytes())
        except ReportError:
            found[row] = False
    return found


def _within(values: NDArray[Any], low: int, high: int) -> Mask:
    """Return which rows have all entries between these bounds."""
    return np.asarray(((values >= low) & (values <= high)).all(axis=1))


def _below(values: NDArray[Any], limit: int) -> Mask:
    return np.asarray(values < limit)


def _bits(mechanism: Any, payloads: Payloads) -> Mask:
    used = mechanism.choices - 8 * (mechanism.payload_size - 1)
    return _below(payloads[:, -1] >> used, 1) if used < 8 else np.ones(len(payloads), np.bool_)


def _olh(mechanism: Any, payloads: Payloads) -> Mask:
    seeds = np.ascontiguousarray(payloads[:, :SEED_BYTES]).view(">u4")
    return _within(seeds, 0, PRIME - 1) & _below(big_endian(payloads[:, SEED_BYTES:]), mechanism.hashes)


def _record(mechanism: Any, payloads: Payloads) -> Mask:
    reach = mechanism.radius + NOISE_REACH
    if mechanism.binary:
        return _within(signed(payloads[:, :-1]), -reach, reach) & _below(payloads[:, -1], 2)
    of_response = mechanism.response_grid + NOISE_REACH
    features, response = signed(payloads[:, :-4]), signed(payloads[:, -4:])
    return _within(features, -reach, reach) & _within(response, -of_response, of_response)


def _refusable(mechanism: Any, payloads: Payloads) -> Mask:
    return possible(mechanism.number, payloads[:, :-1]) & _below(payloads[:, -1], 2)


_POSSIBLE: dict[str, Possible] = {
    "laplace": lambda _, rows: _within(signed(rows), -LARGEST_SIGNED, LARGEST_SIGNED),
    "gaussian": lambda one, rows: _within(signed(rows), -NOISE_REACH, one.levels + NOISE_REACH),
    "refusable_laplace": _refusable,
    "refusable_gaussian": _refusable,
    "randomized_response": lambda one, rows: _below(big_endian(rows), one.choices),
    "oue": _bits,
    "sue": _bits,
    "subset_selection": lambda one, rows: np.bitwise_count(rows).sum(axis=1, dtype=np.int64) == one.size,
    "olh": _olh,
    "hadamard": lambda one, rows: _below(big_endian(rows), one.columns),
    "memoized": lambda one, rows: possible(one.first, rows),
    "gaussian_statistics": lambda one, rows: _within(signed(rows), -one.largest, one.largest),
    "gaussian_record": _record,
    "sampled_products": lambda one, rows: _below(big_endian(rows), one.patterns * len(one.blocks)),
}
