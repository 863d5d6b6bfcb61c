"""The shape of the noise on a data holder's sums of second moments, where it allows a density in O(p^3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jax import Array
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Values = Matrix | Array
# How far noise scales may deviate from the shape that they are taken for.
TOLERANCE = 1e-6


class NoiseShape(NamedTuple):
    """Noise with sd scale_i scale_j on entry (i, j) off the diagonal times sqrt 1/2, and other on some of it.

    In sums divided by scale_i scale_j the noise is isotropic in svec coordinates, of variance 1, but on
    diagonal entries `places`, where it is 1 + excess: -1 is an entry known exactly, inf one not released.
    """

    scale: Values
    places: tuple[int, ...]
    excess: Values


def noise_shape(noise: Matrix, constant: bool) -> NoiseShape | None:
    """The shape of noise sds (p, p); None where sds off the diagonal are no product of two numbers.

    constant: whether entry (0, 0) is the number of records, which the likelihood conditions on.
    """
    scale = _factors(noise)
    if scale is None:
        return None
    excess = np.square(np.diag(noise) / scale**2) - 1
    if constant:
        excess[0] = -1.0
    if np.any(excess[int(constant) :] <= -1):
        return None
    places = tuple(int(i) for i in np.flatnonzero(np.abs(excess) > TOLERANCE))
    return NoiseShape(scale, places, excess[list(places)])


def _factors(noise: Matrix) -> Matrix | None:
    """scale (p,) with noise_ij = scale_i scale_j / sqrt 2 for i < j."""
    p = len(noise)
    rows, columns = np.triu_indices(p, 1)
    above = noise[rows, columns]
    if not (np.isfinite(above) & (above > 0)).all():
        return None
    logs = np.log(above * np.sqrt(2))
    equations = np.zeros((len(rows), p))
    equations[np.arange(len(rows)), rows] = equations[np.arange(len(rows)), columns] = 1
    if p == 2:
        # One product does not say its factors: the diagonal of the feature does.
        equations = np.vstack([equations, [2.0, 0.0]])
        logs = np.append(logs, np.log(noise[0, 0]))
    found, *_ = np.linalg.lstsq(equations, logs, rcond=None)
    fits = np.allclose(equations @ found, logs, rtol=0, atol=TOLERANCE)
    return np.exp(found) if fits else None
