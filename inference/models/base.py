"""What a built-in model is: a NumPyro program, where to start it, and how its draws read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Draws = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Model:
    """One question's model, conditioned on its summary.

    program: NumPyro model without arguments, in scaled units. initial: {site: value} by moments.
    parameters: {site: draws (…, site shape)} -> {parameter name: draws (…)} in the question's own units.
    """

    program: Callable[[], None]
    initial: Mapping[str, object]
    parameters: Callable[[Draws], dict[str, NDArray[np.float64]]]
