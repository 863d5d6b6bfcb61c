"""One report of a memoized mechanism is one of the mechanism that it memoizes, with other probabilities."""

from __future__ import annotations

from typing import cast

from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.memoized import Memoized
from summaries.reductions.base import Payloads, Reduction, Values
from summaries.reductions.choice import INDEX_COUNTS, UNARY_COUNTS

_OF = {"randomized_response": INDEX_COUNTS, "sue": UNARY_COUNTS}


def _of(mechanism: Mechanism) -> Reduction:
    return _OF[cast(Memoized, mechanism).of]


def _size(mechanism: Mechanism) -> int:
    return _of(mechanism).size(mechanism)


def _reduce(mechanism: Mechanism, payloads: Payloads) -> Values:
    return _of(mechanism).reduce(mechanism, payloads)


def _possible(mechanism: Mechanism, n: int, values: Values) -> bool:
    return _of(mechanism).possible(mechanism, n, values)


MEMOIZED = Reduction(_size, _reduce, _possible)
