"""LDP-SGD: regression by one pass of noisy gradients (Wang et al. 2019, as LDPBI section 4.2 adapts it).

People are split into groups. Each person of a group sends the gradient of their own loss at the current
coefficients, clipped to L2 norm 1, with Gaussian noise; the mean of a group's gradients makes one step. Every
person takes part once, so ε and δ do not grow with the number of steps.

A baseline for comparison only: **it simulates the noise in floats and must not run on devices.**
"""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, log

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
# (coefficients (d,), features (m, d), responses (m,)) -> each person's own gradient (m, d).
Gradient = Callable[[Vector, Matrix, Vector], Matrix]

CLIP = 1.0


def squared_loss_gradient(coefficients: Vector, features: Matrix, responses: Vector) -> Matrix:
    """Gradients of (x·θ − y)² / 2, one row a person."""
    return (features @ coefficients - responses)[:, None] * features


def logistic_loss_gradient(coefficients: Vector, features: Matrix, responses: Vector) -> Matrix:
    """Gradients of log(1 + exp(−y x·θ)) for y in {−1, 1}, one row a person."""
    margin = responses * (features @ coefficients)
    return (-responses / (1 + np.exp(np.minimum(margin, 700.0))))[:, None] * features


def clipped(gradients: Matrix) -> Matrix:
    """Rows longer than CLIP in L2 norm, shortened to it."""
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(lengths / CLIP, 1.0)


def gradient_noise_sd(epsilon: Fraction, delta: Fraction, dimension: int) -> float:
    """The noise on each coordinate of one clipped gradient: analytic Gaussian mechanism (METHODS 1.5).

    Replace-one: two clipped gradients may point in opposite directions, so the sensitivity is 2·CLIP.
    Raises ValueError where epsilon or delta is too small.
    """
    radius = gaussian_radius(epsilon, delta, dimension)
    if radius < 1:
        raise ValueError("epsilon or delta is too small for any noise of this precision")
    return 2 * CLIP * (1 << NOISE_BITS) / radius


def group_size(dimension: int, epsilon: float) -> int:
    """d log d / ε² people, Wang et al.'s order of magnitude, at least 1 (d counted as 2 or more)."""
    return max(1, ceil(dimension * log(max(dimension, 2)) / epsilon**2))


def ldp_sgd(
    gradient: Gradient,
    features: Matrix,
    responses: Vector,
    *,
    noise_sd: float,
    people_a_step: int,
    rate: float,
    random: Generator,
) -> Vector:
    """The coefficients (d,) after one pass in random order, from 0, with steps of rate / √t.

    features (n, d), responses (n,). noise_sd: `gradient_noise_sd`. A last group that is not full is left out,
    unless it is the only one.
    """
    order = random.permutation(len(features))
    steps = max(1, len(order) // people_a_step)
    coefficients = np.zeros(features.shape[1])
    for step in range(steps):
        people = order[step * people_a_step : (step + 1) * people_a_step]
        sums = clipped(gradient(coefficients, features[people], responses[people])).sum(0)
        # The sum of the group's independent noises.
        noise = random.normal(0.0, noise_sd * np.sqrt(len(people)), len(coefficients))
        coefficients = coefficients - rate / np.sqrt(step + 1) * (sums + noise) / len(people)
    return coefficients
