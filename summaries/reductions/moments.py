"""Reports of a record: the sums of their coordinates."""

from __future__ import annotations

from typing import cast

import numpy as np

from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from summaries.reductions.base import Payloads, Reduction, Values, signed


def _coordinate_count(mechanism: Mechanism) -> int:
    return len(cast(GaussianStatistics, mechanism).coordinates)


def _sums(_mechanism: Mechanism, payloads: Payloads) -> Values:
    return np.asarray(signed(payloads).sum(axis=0, dtype=np.int64))


def _sums_possible(mechanism: Mechanism, n: int, values: Values) -> bool:
    return int(abs(values).max()) <= n * cast(GaussianStatistics, mechanism).largest


SUMS = Reduction(_coordinate_count, _sums, _sums_possible)
