"""Half widths of posteriors from a formula, without simulation: shares of choices, and laws of a number.

A posterior of many reports is nearly normal, with the information of n reports at the truth and the prior's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from inference.models import family_of
from inference.models.base import Truth
from inference.models.number import cell_edges, channel_of
from inference.models.number_law import NumberLaw
from inference.results.intervals import REFUSED
from inference.units import number_units
from ldp_client import mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Question

Vector = NDArray[np.float64]

AT_ONCE = "half the 90 % interval from a formula: the information of the reports and of the prior"
# Half of a 90 % interval, in sds.
HALF = float(ndtri(0.95))
# The most people; the search for a number ends there.
MOST_PEOPLE = 10**9
# As a share of its prior's width. For an sd at a share of 0.45 the mean was 0.66 of the simulated one.
ROUGH = 0.25
# For more choices, each is taken by itself.
MOST_TOGETHER = 500
# Mechanisms whose sets of choices have any size, so that it is informative that all shares add up to 1.
OF_ANY_SIZE = ("oue", "sue", "olh", "memoized")
# The number of places for answers between the bounds; a parameter's step, as a share of its prior's sd.
PLACES, STEP = 1025, 1e-4
NOISE = ("laplace", "gaussian")


def half_widths(
    question: Question, truths: Sequence[Truth], answers: Sequence[int], prior: Mapping[str, float]
) -> dict[str, Vector] | None:
    """Return {parameter: (numbers of answers,)}: medians over the truths; None if there is no formula.

    prior: {parameter: half of its prior's 90 % interval}.
    """
    # If all parameters are stated, the truths are equal.
    different = {tuple(truth.parameters.items()): truth for truth in truths}
    seen = _seen(question) if _is_number(question) else None
    known = {key: _half_at(question, truth, answers, prior, seen) for key, truth in different.items()}
    found = [one for truth in truths if (one := known[tuple(truth.parameters.items())]) is not None]
    if len(found) < len(truths):
        return None
    halves = {name: np.median([one[name] for one in found], axis=0) for name in found[0]}
    # At the edge of a law's parameters its slopes cannot be computed.
    return halves if all(np.isfinite(half).all() for half in halves.values()) else None


def in_words(epsilon: str, parameter: str, half: Vector, devices: Sequence[int]) -> str:
    """Return the formula's result for one parameter, to print before studies are simulated."""
    said = ", ".join(f"± {one:.3g} from {n:,}" for one, n in zip(half, devices, strict=True))
    return f"{parameter} at epsilon {epsilon}, by a formula: {said} devices"


def rough_note(
    epsilon: str, halves: Mapping[str, Vector], devices: Sequence[int], prior: Mapping[str, float]
) -> tuple[str, ...]:
    """Return a note if a posterior is too wide to be normal, so that the formula may be far off."""
    relative = np.max([half / prior[name] for name, half in halves.items()], axis=0)
    return rough_at(epsilon, relative, devices, "the formula is rough: simulate there")


def rough_at(epsilon: str, relative: Vector, devices: Sequence[int], so: str) -> tuple[str, ...]:
    """Return that note. relative: (devices,), of the prior's width. so: the consequence, in words."""
    rough = np.flatnonzero(relative > ROUGH)
    if not len(rough):
        return ()
    most = devices[int(rough[-1])]
    return (f"at epsilon {epsilon} up to {most:,} devices posteriors are not normal, and {so}",)


def _half_at(
    question: Question,
    truth: Truth,
    answers: Sequence[int],
    prior: Mapping[str, float],
    seen: Vector | None,
) -> dict[str, Vector] | None:
    """Return half widths at one truth. seen: for a number, the law of its reports given each answer."""
    if question.protocol is not None:
        return None
    mechanism = mechanism_for(question)
    if (
        isinstance(mechanism, ChoiceMechanism)
        and mechanism.name != "hadamard"
        and question.model.name in ("bernoulli", "multinomial")
    ):
        variances = share_variances(question, mechanism, truth.parameters)
        if variances is None:
            return None
        return {name: _beside_prior(variance, answers, prior[name]) for name, variance in variances.items()}
    law = family_of(question)
    if seen is not None and isinstance(law, NumberLaw):
        # A law that a user added may have no distribution function.
        with suppress(NotImplementedError):
            return _of_number(law, question, truth, answers, prior, seen)
    return None


def _is_number(question: Question) -> bool:
    """Return True for a number with a law, whose reports contain the number only."""
    law = family_of(question)
    if not isinstance(law, NumberLaw) or (law.whole and number_units(question)[0] < 0):
        return False
    known = question.mechanism.name in NOISE
    return known and question.protocol is None and not question.refusal


def _beside_prior(variance: float, answers: Sequence[int], prior: float) -> Vector:
    """Combine the variance per report with the prior's half width, for numbers of answers."""
    told = np.asarray(answers, float) / variance / HALF**2
    return np.asarray(1 / np.sqrt(told + 1 / prior**2))


def share_variances(
    question: Question, mechanism: ChoiceMechanism, truth: Mapping[str, float]
) -> dict[str, float] | None:
    """Return {parameter: n times the variance of its estimate from n reports}; None without a formula.

    From how often reports support each choice, s = q + (p − q) share, less what is known as shares add up to
    1.
    """
    refused = truth.get(REFUSED, 0.0)
    if "p" in truth:
        names, shares = ["", "p"], np.asarray([1 - truth["p"], truth["p"]])
    else:
        names = [name for name in truth if name != REFUSED]
        shares = np.asarray([truth[name] for name in names])
    if question.refusal:
        names, shares = [*names, REFUSED], np.append((1 - refused) * shares, refused)
    # The labels within a set depend on one another, and a refusal is one more label.
    if question.refusal and mechanism.name == "subset_selection":
        return None
    p, q = float(mechanism.p), float(mechanism.q)
    if len(shares) > MOST_TOGETHER:
        if question.refusal:
            return None
        supported = q + (p - q) * shares
        return dict(zip(names, supported * (1 - supported) / (p - q) ** 2, strict=True))
    together = _covariance(mechanism, shares, p, q)
    turn = np.eye(len(shares))
    if question.refusal:
        turn[:-1, :-1] /= 1 - refused
        turn[:-1, -1] = shares[:-1] / (1 - refused) ** 2
    own = np.einsum("ij,jk,ik->i", turn, together, turn)
    return {name: float(value) for name, value in zip(names, own, strict=True) if name}


def _covariance(mechanism: ChoiceMechanism, shares: Vector, p: float, q: float) -> Vector:
    """n times the covariance of the estimated shares."""
    supported = q + (p - q) * shares
    if "randomized_response" in (mechanism.name, getattr(mechanism, "of", "")):
        found = np.diag(supported) - np.outer(supported, supported)
        return np.asarray(found / (p - q) ** 2)
    found = -np.outer(shares, shares)
    np.fill_diagonal(found, supported * (1 - supported) / (p - q) ** 2)
    if mechanism.name in OF_ANY_SIZE:
        toward = found.sum(axis=1)
        found -= np.outer(toward, toward) / toward.sum()
    return found


def _of_number(
    law: NumberLaw,
    question: Question,
    truth: Truth,
    answers: Sequence[int],
    prior: Mapping[str, float],
    seen: Vector,
) -> dict[str, Vector]:
    """Use the information of one report on the law's parameters: Σ of squared slopes over probabilities."""
    names = list(law.measures)
    point = np.asarray([truth.parameters[name] for name in names])
    sds = np.asarray([prior[name] for name in names]) / HALF
    moved = [(sign * STEP * sd, place) for place, sd in enumerate(sds) for sign in (1, -1)]
    points = [point, *(point + step * np.eye(len(names))[place] for step, place in moved)]
    found = _masses(law, question, names, np.stack(points)) @ seen
    slopes = (found[1::2] - found[2::2]) / (2 * STEP * sds[:, None])
    information = (slopes / np.maximum(found[0], 1e-300)) @ slopes.T
    widths = [HALF * np.sqrt(np.diag(np.linalg.inv(n * information + np.diag(1 / sds**2)))) for n in answers]
    return dict(zip(names, np.stack(widths, axis=-1), strict=True))


def _places(law: NumberLaw, question: Question) -> Vector:
    """Return answers from bound to bound, with the bounds at 0 and 1; for a whole-number law its numbers."""
    width = number_units(question)[1]
    return np.linspace(0, 1, round(width) + 1 if law.whole else PLACES)


def _seen(question: Question) -> Vector:
    """Return the probabilities of reports in cells, given each answer: (places, cells)."""
    mechanism = mechanism_for(question)
    places = _places(cast(NumberLaw, family_of(question)), question)
    return channel_of(mechanism, *cell_edges(mechanism), places)


def _masses(law: NumberLaw, question: Question, names: Sequence[str], points: Vector) -> Vector:
    """Return (points, places): the shares of answers at each place, answers beyond a bound at the bound."""
    units = law.units(question)
    low, width = number_units(question)
    at = (low + width * _places(law, question) - units.zero) / units.unit
    with jax.enable_x64(True):
        sites = {}
        for place, name in enumerate(names):
            zero = law.measures[name].own(0.0, units)
            unit = law.measures[name].own(1.0, units) - zero
            sites[name] = jnp.asarray((points[:, place, None] - zero) / unit)
        found = law.law(**sites)
        if law.whole:
            whole = jnp.arange(round(at[-1]) + 1)[None]
            every = np.exp(np.asarray(found.log_prob(whole), np.float64))
            own = every[:, round(at[0]) :]
            own[:, 0] += every[:, : round(at[0])].sum(axis=1)
            own[:, -1] = 1 - own[:, :-1].sum(axis=1)
            return own
        between = (at[1:] + at[:-1]) / 2
        below = np.asarray(found.cdf(jnp.asarray(between)[None]), np.float64)
    ends = np.zeros((len(points), 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)
