"""Secure sums: the values are the total itself; no single report is ever seen."""

from __future__ import annotations

from typing import cast

import numpy as np

from ldp_client.documents.errors import ReportError
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.summed import SummedMechanism
from summaries.reductions.base import Payloads, Reduction, Values


def _size(mechanism: Mechanism) -> int:
    return cast(SummedMechanism, mechanism).size


def _refuse(mechanism: Mechanism, payloads: Payloads) -> Values:
    """The sum of no reports; a single one is an error."""
    if len(payloads):
        raise ReportError(f"payloads.{mechanism.field}", "travels as secret shares only")
    return np.zeros(_size(mechanism), dtype=np.int64)


def _possible(mechanism: Mechanism, n: int, values: Values) -> bool:
    return int(abs(values).max()) <= n * cast(SummedMechanism, mechanism).largest


TOTALS = Reduction(_size, _refuse, _possible)
