"""How many devices a wanted width needs, from widths that were simulated or calculated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def devices_for(width: float, devices: Sequence[int], half_widths: NDArray[np.float64]) -> float:
    """About how many devices make the half width at most `width`; half_widths (devices,) are simulated.

    Between simulated numbers log width is linear in log devices; beyond the last one width falls by 1/√n.
    At most the fewest simulated devices when those already suffice: the number may be smaller.
    """
    # Simulated medians may go up by chance; a wider one further on counts for those before it.
    widths = np.maximum.accumulate(half_widths[::-1])[::-1]
    if width >= widths[0]:
        return float(devices[0])
    if width < widths[-1]:
        return float(devices[-1] * (widths[-1] / width) ** 2)
    logs = np.interp(np.log(width), np.log(widths[::-1]), np.log(np.asarray(devices, float)[::-1]))
    return float(np.exp(logs))


def rounded_up(devices: float) -> int:
    """Two significant digits, upwards: more would promise too much."""
    step = 10 ** max(0, len(str(int(devices))) - 2)
    return int(-(-devices // step) * step)
