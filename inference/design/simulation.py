"""Simulated studies: answers drawn from a truth, and the summary that they leave under the noise."""

from collections.abc import Mapping
from copy import copy
from typing import Any, cast

import jax
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods.regression.products import SignPatterns, sign_table
from inference.models import family_of
from inference.models.base import Truth
from inference.models.sampled_products import cell_probabilities, signs_of
from inference.units import RecordUnits, field_units, number_units
from ldp_client import Mechanism
from ldp_client.bulk import randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.quantise import UNIT
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.channel import FEWEST_NOISY
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.sampled_products import SampledProducts
from ldp_client.mechanisms.summed_gaussian import SQUARE_BOTTOM, SQUARE_TOP, SummedHistogram, SummedMechanism
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

Vector = NDArray[np.float64]
# Working memory: this many people at once.
CHUNK = 1 << 17
# People by whom the share of clipped answers is measured.
PEOPLE = 1000


def simulate(
    question: Question, mechanism: Mechanism, truth: Truth, n: int, random: Generator, clip: bool = True
) -> QuestionSummary:
    """Simulate the summary of n people's reports, from the mechanism itself with seeded randomness.

    clip: whether records beyond their bounds or norm are clipped, as devices do. The regression models do not
    know of clipping; without it, their own assumptions hold (only for sums of second moments, and for sampled
    products, whose signs are then drawn by the moments of the truth's sites). Totals are drawn from their
    law: they depend on the answers' exact sums alone.
    """
    reduction = REDUCTIONS[mechanism.name]
    values = np.zeros(reduction.size(mechanism), dtype=np.int64)
    for start in range(0, n, CHUNK):
        count = min(CHUNK, n - start)
        answers = family_of(question).simulate(question, truth, count, random)
        if isinstance(mechanism, SampledProducts) and not clip:
            values += random.multinomial(count, pattern_shares(mechanism, truth))
        elif isinstance(mechanism, GaussianStatistics) or question.protocol is not None:
            values += noisy_total(exact_total(question, mechanism, answers, clip), count, random)
        else:
            values += reduction.reduce(
                mechanism,
                randomise_many(mechanism, quantise_many(mechanism, answers), NotForRealAnswers(random.bytes)),
            )
    return QuestionSummary(n, values)


def pattern_shares(mechanism: SampledProducts, truth: Truth) -> Vector:
    """Return probabilities of patterns, whose signs have the truth's own moments, as if nothing were clipped.

    The signs of one report are independent: their law is of no consequence to the models.
    """
    if mechanism.signs == 1:
        return cell_probabilities(mechanism, truth.sites)
    with jax.enable_x64(True):
        law = cast(SignPatterns, signs_of(mechanism, np.asarray(truth.sites["second"]), 1))
        means = np.asarray(law.signs()[0], np.float64)
    patterns = np.prod((1 + sign_table(mechanism.signs) * means[:, None]) / 2, axis=-1)
    shares = (np.asarray(mechanism.weights) / mechanism.total)[:, None] * patterns
    return np.asarray(shares / shares.sum()).ravel()


def clipping(question: Question, truth: Truth, random: Generator) -> tuple[float, bool]:
    """Return the share of numbers or records beyond their bounds or norm, which devices would clip.

    Also return False for a truth of records whose mean squares no clipped record can have.
    """
    if question.ask not in ("number", "record"):
        return 0.0, True
    answers = family_of(question).simulate(question, truth, PEOPLE, random)
    if question.ask == "number":
        low, width = number_units(question)
        answers = np.asarray([answer for answer in answers if answer is not None], np.float64)
        return float(np.mean(np.abs(answers - low - width / 2) > width / 2)), True
    fields = [field for field in question.fields if field.bounds is not None]
    columns = [_signed(answers[field.id], *field_units(field)) for field in fields]
    numbers = np.column_stack(columns) if columns else np.zeros((1, 0))
    beyond, possible = (np.abs(numbers) > 1).any(axis=1), (np.mean(numbers**2, axis=0) <= 1).all()
    if question.norm is not None:
        features, norm = record_vectors(question, 1.0, answers)[:, 1:-1], float(question.norm)
        beyond |= np.linalg.norm(features, axis=1) > norm
        possible &= np.mean(features**2, axis=0).sum() <= norm**2
    return float(np.mean(beyond)), bool(possible)


def for_devices(question: Question, n: int) -> Question:
    """Copy the question for n devices, keeping the study's dropout fraction.

    Without a secure sum a question is the same for any n. Raises InputError for fewer devices than a secure
    sum can have.
    """
    if question.protocol is None:
        return question
    protocol = copy(question.protocol)
    if n < FEWEST_NOISY:
        raise InputError(
            f"{question.id}: a secure sum needs at least {FEWEST_NOISY} devices",
            code="plan.too_few_for_secure_sum",
        )
    tolerated = protocol.max_faulty * n // protocol.devices
    protocol.devices, protocol.max_faulty = n, min(tolerated, n - FEWEST_NOISY)
    changed = copy(question)
    changed.protocol = protocol
    return changed


def noisy_total(values: Vector, n: int, random: Generator) -> NDArray[np.int64]:
    """Add the noise of n devices: a sum of n rounded normals is a rounded normal except for a 2⁻⁴⁰th."""
    noise = random.normal(0.0, float(1 << NOISE_BITS), len(values)) * np.sqrt(n)
    return np.rint(values + noise).astype(np.int64)


def exact_total(question: Question, mechanism: Mechanism, answers: Any, clip: bool) -> Vector:
    """Sum the answers' statistics, in the mechanism's integers, each to half a unit a person.

    clip: whether records are clipped to their bounds and norm, as devices do.
    """
    if isinstance(mechanism, GaussianStatistics):
        if clip:
            vectors = np.asarray(quantise_many(mechanism, answers), np.float64) / UNIT
        else:
            vectors = record_vectors(question, mechanism.scaled_weight, answers)
        total = vectors.T @ vectors
        exact = [total[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in mechanism.coordinates]
        return np.asarray(exact) * mechanism.grid
    summed = cast(SummedMechanism, mechanism)
    if question.ask == "number":
        low, width = number_units(question)
        places = _signed(answers, low + width / 2, width / 2)
        if isinstance(summed, SummedHistogram):
            index = np.clip(np.floor((places + 1) / 2 * summed.size), 0, summed.size - 1).astype(np.int64)
            return summed.grid * np.bincount(index, minlength=summed.size).astype(np.float64)
        return summed.grid * _moments(places)
    if question.ask == "record":
        columns = [_signed(answers[field.id], *field_units(field)) for field in question.fields]
        return summed.grid * np.concatenate([_moments(column) for column in columns])
    labels, counts = np.unique(answers, return_counts=True)
    quantised = [summed.quantise(label) for label in labels.tolist()]
    return np.asarray(counts @ np.asarray(quantised, np.float64))


def _signed(values: Any, zero: float, unit: float) -> Vector:
    return (np.asarray(values, np.float64) - zero) / unit


def _moments(places: Vector) -> Vector:
    """Sums of u and 3/2 u², clipped to [−1, 1]."""
    clipped = np.clip(places, -1, 1)
    return np.asarray([clipped.sum(), SQUARE_TOP / SQUARE_BOTTOM * (clipped**2).sum()])


def record_vectors(question: Question, weight: float, answers: Mapping[str, NDArray[Any]]) -> Vector:
    """v = (constant, features, response) of each record in scaled units, (n, d + 2)."""
    units = RecordUnits(question)
    assert question.response is not None
    features = (np.column_stack([answers[name] for name in units.names]) - units.zero) / units.unit
    response = np.asarray(answers[question.response.id])
    if response.dtype == np.bool_:
        response = np.where(response, 1.0, -1.0)
    scaled = (response - units.response.zero) / units.response.unit
    return np.column_stack([np.full(len(features), weight), features, weight * scaled])
