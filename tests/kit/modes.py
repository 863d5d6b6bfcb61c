"""The Gaussian approximation without derivatives, whose compilation takes most of a small fit's time."""

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from inference.compiling import Program
from inference.sampling import gaussian_approximation
from inference.sampling.gaussian_approximation import LARGEST, Mode

# The search takes many steps in more dimensions.
MOST_DIMENSIONS = 4
STEP = 0.01
Vector = NDArray[np.float64]


def fit_without_derivatives(monkeypatch):
    """Let `gaussian_approx` find modes by values of the density alone.

    Importance weights correct the draws, so a mode that is a little off changes nothing else.
    """
    with_derivatives = gaussian_approximation.find_mode

    def find_mode(space, start, data):
        if space.dimension > MOST_DIMENSIONS:
            return with_derivatives(space, start, data)
        return mode_by_values(Program(space.potential, runs_once=True), start, data)

    monkeypatch.setattr(gaussian_approximation, "find_mode", find_mode)


def mode_by_values(potential, start, data):
    """The mode by Nelder and Mead's search, and the curvature by differences."""

    def value(vector):
        found = float(potential(vector, data))
        return found if np.isfinite(found) else LARGEST

    options = {"xatol": 1e-4, "fatol": 1e-5, "maxiter": 2000}
    at = np.asarray(optimize.minimize(value, start, method="Nelder-Mead", options=options).x)
    steps = STEP * np.eye(len(at))
    hessian = np.array(
        [
            [
                sum(i * j * value(at + i * one + j * other) for i in (-1, 1) for j in (-1, 1)) / (4 * STEP**2)
                for other in steps
            ]
            for one in steps
        ]
    )
    factor, lifted = gaussian_approximation._factor(hessian)

    def slope(vector):
        rises = [(value(vector + one) - value(vector - one)) / (2 * STEP) for one in steps]
        return value(vector), np.array(rises)

    return Mode(at, factor, (gaussian_approximation._FLAT,) if lifted else (), slope)
