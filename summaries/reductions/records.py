"""Records, and the sums that they reduce to: statistics, perturbed records, secure sums, holders' tables.

For statistics, the sums of their coordinates are kept; for sampled products, the count of each pattern of
signs. The report z = (features, response) of a perturbed record with a numeric response is jointly normal
given the parameters: Σ z and Σ zzᵀ are sufficient (METHODS 5). With a yes/no response no fixed-size summary
is sufficient: its probability is another function of the features in each report, so the reports themselves
are kept. For a secure sum the values are the total; single reports are never seen. A holder's report is a
statistic of its table: a posterior needs them one by one.
"""

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.strips import NOISE_REACH
from ldp_client.documents.errors import ReportError
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.summed_gaussian import SummedMechanism
from summaries.reductions.base import Payloads, Reduction, Values, counting, signed

# Entries are below 2**26, and 2**26 of their squares would exceed 63 bits too soon. Each entry is split into
# high·2**13 + low; sums of the parts' products stay below 2**63 for 2**36 reports.
PART_BITS = 13
LOW = (1 << PART_BITS) - 1
Floats = NDArray[np.float64]


def _size(mechanism: GaussianRecord) -> int:
    entries = len(mechanism.features) + 1
    return 0 if mechanism.binary else entries + 3 * (entries * (entries + 1) // 2)


def _sums(mechanism: GaussianRecord, payloads: Payloads) -> Values:
    """Sum z, then the upper triangles of Σ high·highᵀ, Σ (high·lowᵀ + low·highᵀ) and Σ low·lowᵀ."""
    if mechanism.binary:
        return np.zeros(0, dtype=np.int64)
    z = signed(payloads).astype(np.int64)
    # Floats hold these products' sums exactly for 2**27 reports at once.
    high, low = (z >> PART_BITS).astype(np.float64), (z & LOW).astype(np.float64)
    mixed = high.T @ low
    upper = np.triu_indices(z.shape[1])
    parts = [part[upper] for part in (high.T @ high, mixed + mixed.T, low.T @ low)]
    return np.concatenate([z.sum(axis=0), *[part.astype(np.int64) for part in parts]])


def _possible(record: GaussianRecord, n: int, values: Values) -> bool:
    if record.binary:
        return True
    sums, parts = _split(record, values)
    reach = np.full(len(sums), record.radius + NOISE_REACH)
    reach[-1] = record.response_grid + NOISE_REACH
    bound = n << 2 * PART_BITS + 1
    return bool((abs(sums) <= n * reach).all() and (abs(parts) <= bound).all())


def _split(mechanism: GaussianRecord, values: Values) -> tuple[Values, Values]:
    entries = len(mechanism.features) + 1
    return values[:entries], values[entries:].reshape(3, -1)


RECORDS = Reduction(_size, _sums, _possible, lambda mechanism: mechanism.binary)


def record_moments(mechanism: GaussianRecord, values: Values) -> tuple[Floats, Floats]:
    """Return Σ z, (d + 1,), and Σ zzᵀ, (d + 1, d + 1), in scaled units; for a numeric response."""
    sums, parts = _split(mechanism, values)
    entries = len(sums)
    weights = [float(1 << 2 * PART_BITS), float(1 << PART_BITS), 1.0]
    total = np.zeros((entries, entries))
    total[np.triu_indices(entries)] = np.asarray(weights) @ parts.astype(np.float64)
    total = total + np.triu(total, 1).T
    grid = np.full(entries, float(mechanism.grid))
    grid[-1] = mechanism.response_grid
    return sums / grid, total / np.outer(grid, grid)


def record_rows(mechanism: GaussianRecord, reports: Payloads) -> tuple[Floats, NDArray[np.int8]]:
    """Decode reports that were kept whole.

    Returns:
        Features in scaled units, shape (n, d), and responses, 0 or 1, shape (n,).
    """
    features = signed(reports[:, :-1]) / float(mechanism.grid)
    return np.asarray(features, dtype=np.float64), reports[:, -1].astype(np.int8)


def _bounded(mechanism: GaussianStatistics | SummedMechanism, n: int, values: Values) -> bool:
    return int(abs(values).max()) <= n * mechanism.largest


SUMS = Reduction(
    lambda mechanism: len(mechanism.coordinates),
    lambda _mechanism, payloads: signed(payloads).sum(axis=0, dtype=np.int64),
    _bounded,
)


# How often each pattern of signs came, for the blocks of products side by side.
PRODUCTS = counting(lambda mechanism: mechanism.patterns * len(mechanism.blocks))


def _refuse(mechanism: SummedMechanism, payloads: Payloads) -> Values:
    """Sum no reports; a single report is an error."""
    if len(payloads):
        raise ReportError(
            f"payloads.{mechanism.field}", "travels as secret shares only", code="report.secret_shares_only"
        )
    return np.zeros(mechanism.size, dtype=np.int64)


TOTALS = Reduction(lambda mechanism: mechanism.size, _refuse, _bounded)


# No values: a posterior needs the reports.
TABLES = Reduction(
    size=lambda _mechanism: 0,
    reduce=lambda _mechanism, _payloads: np.zeros(0, dtype=np.int64),
    possible=lambda _mechanism, _n, _values: True,
    keeps_reports=lambda _mechanism: True,
)
