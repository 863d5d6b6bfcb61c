"""The total of a simulated secure sum: the people's exact statistics, and all devices' noise at once."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.design.simulated_vectors import record_vectors
from inference.units import field_units, fields_of, number_units
from ldp_client import Mechanism
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.calibration import NOISE_BITS
from ldp_client.core.quantise import UNIT
from ldp_client.documents.errors import InputError
from ldp_client.documents.route import FEWEST_NOISY
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.summed import SQUARE_BOTTOM, SQUARE_TOP, SummedMechanism
from ldp_client.mechanisms.summed_gaussian import SummedHistogram
from schemas import Question

Vector = NDArray[np.float64]


def among(question: Question, n: int) -> Question:
    """The question in a study for n clients, as large a share of which may drop out as in its own.

    Without a secure sum a question is the same for any n. Raises InputError for fewer devices than a secure
    sum can have.
    """
    if question.route is None:
        return question
    route = copy(question.route)
    if n < FEWEST_NOISY:
        raise InputError(f"{question.id}: a secure sum needs at least {FEWEST_NOISY} devices")
    tolerated = route.tolerate * n // route.clients
    route.clients, route.tolerate = n, min(tolerated, n - FEWEST_NOISY)
    changed = copy(question)
    changed.route = route
    return changed


def noisy_total(values: Vector, n: int, random: Generator) -> NDArray[np.int64]:
    """With the noise of n devices: a sum of n rounded normals is a rounded normal but for a 2⁻⁴⁰th."""
    noise = random.normal(0.0, float(1 << NOISE_BITS), len(values)) * np.sqrt(n)
    return np.rint(values + noise).astype(np.int64)


def exact_total(question: Question, mechanism: Mechanism, answers: Any, clip: bool) -> Vector:
    """What the answers' statistics add up to, in the mechanism's integers, each to half a unit a person.

    clip: whether records are clipped to their bounds and norm, as devices do.
    """
    if isinstance(mechanism, GaussianStatistics):
        return _products(question, mechanism, answers, clip)
    summed = cast(SummedMechanism, mechanism)
    if question.ask == "number":
        low, width = number_units(question)
        places = _signed(answers, low + width / 2, width / 2)
        counts_cells = isinstance(summed, SummedHistogram)
        return summed.grid * (_cells(places, summed.size) if counts_cells else _moments(places))
    if question.ask == "record":
        columns = [_signed(answers[field.id], *field_units(field)) for field in fields_of(question)]
        return summed.grid * np.concatenate([_moments(column) for column in columns])
    labels, counts = np.unique(answers, return_counts=True)
    vectors = [summed.quantise(label) for label in labels.tolist()]
    return np.asarray(counts @ np.asarray(vectors, np.float64))


def _signed(values: Any, zero: float, unit: float) -> Vector:
    return (np.asarray(values, np.float64) - zero) / unit


def _moments(places: Vector) -> Vector:
    """Sums of u and 3/2 u², clipped to [−1, 1]."""
    clipped = np.clip(places, -1, 1)
    return np.asarray([clipped.sum(), SQUARE_TOP / SQUARE_BOTTOM * (clipped**2).sum()])


def _cells(places: Vector, cells: int) -> Vector:
    index = np.clip(np.floor((places + 1) / 2 * cells), 0, cells - 1).astype(np.int64)
    return np.bincount(index, minlength=cells).astype(np.float64)


def _products(
    question: Question, mechanism: GaussianStatistics, answers: Mapping[str, NDArray[Any]], clip: bool
) -> Vector:
    if clip:
        vectors = np.asarray(quantise_many(mechanism, answers), np.float64) / UNIT
    else:
        vectors = record_vectors(question, mechanism.scaled_weight, answers)
    total = vectors.T @ vectors
    exact = [total[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in mechanism.coordinates]
    return np.asarray(exact) * mechanism.grid
