"""Computes how many devices a wanted width needs, from simulated or calculated widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldp_client.documents.errors import UsageError


def check_wishes(width: float | None = None, power: float | None = None) -> None:
    """Raise UsageError for a half width or a power that no plan can reach."""
    if width is not None and not 0 < width < np.inf:
        raise UsageError("--margin must be a number above 0", code="plan.margin_not_positive")
    if power is not None and not 0 < power < 1:
        raise UsageError("--power must be a probability, such as 0.8", code="plan.power_not_probability")


def devices_for(width: float, devices: Sequence[int], half_widths: NDArray[np.float64]) -> float:
    """Return about how many devices make the half width at most `width`; half_widths (devices,): simulated.

    Between simulated numbers log width is linear in log devices; beyond the last one width falls by 1/√n. If
    the fewest simulated devices already suffice, the result is at most that number: it may be smaller.
    """
    # Simulated medians may increase by chance; a wider median at more devices also counts for fewer devices.
    widths = np.maximum.accumulate(half_widths[::-1])[::-1]
    if width >= widths[0]:
        return float(devices[0])
    if width < widths[-1]:
        return float(devices[-1] * (widths[-1] / width) ** 2)
    logs = np.interp(np.log(width), np.log(widths[::-1]), np.log(np.asarray(devices, float)[::-1]))
    return float(np.exp(logs))
