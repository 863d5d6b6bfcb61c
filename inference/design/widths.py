"""Posterior widths in simulated studies, for numbers of devices at one budget: works of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.design.calibration import generator_of
from inference.design.simulated_posteriors import Measured, Parameters, Studies, poor_chains
from inference.design.simulation import for_devices, simulate
from inference.models import model_for
from inference.models.base import Model, Truth
from ldp_client import mechanism_for
from schemas import Question

Vector = NDArray[np.float64]

DRAWS, THIN = 400, 1
# Half of the 90 % interval is the ± in width options.
TAILS = (0.05, 0.95)


class Widths(NamedTuple):
    """half: (devices, parameters). poor: {parameter: the share of studies whose chain mixes poorly}."""

    parameters: tuple[str, ...]
    half: Vector
    poor: Mapping[str, float]


def studies_of(
    question: Question, truths: Sequence[Truth], devices: Sequence[int], seed: int
) -> tuple[Studies, ...]:
    """Return the studies to simulate; a secure sum has some per number of devices, as noise depends on it."""
    if question.protocol is not None:
        return tuple(_studies(for_devices(question, n), truths, (n,), seed) for n in devices)
    return (_studies(question, truths, devices, seed),)


def _studies(question: Question, truths: Sequence[Truth], devices: Sequence[int], seed: int) -> Studies:
    """Return a study for each number of devices and each truth."""
    mechanism = mechanism_for(question)
    cells = [(n, truth) for n in devices for truth in truths]

    def model(place: int) -> Model:
        n, truth = cells[place]
        summary = simulate(question, mechanism, truth, n, generator_of(seed, place), clip=False)
        return model_for(question, summary)

    epsilon = question.mechanism.epsilon
    said = f"{question.id}: fitted {{}} of {len(cells)} simulated studies at epsilon {epsilon}"
    return Studies(model, len(cells), seed, DRAWS, THIN, _half_widths, said)


def _half_widths(_places: range, draws: Parameters) -> Measured:
    halves = {name: np.diff(np.quantile(one, TAILS, axis=1), axis=0)[0] / 2 for name, one in draws.items()}
    return {"half": halves, "poor": poor_chains(draws)}


def widths_of(found: Sequence[Measured], truths: int) -> Widths:
    """Return medians over the truths for each number of devices, from all studies of one budget."""
    names = tuple(found[0]["half"])
    rows, poor = [], []
    for studies in found:
        half = np.stack([studies["half"][name] for name in names], axis=-1)
        rows.append(np.median(half.reshape(-1, truths, len(names)), axis=1))
        poor.append({name: float(np.mean(studies["poor"][name])) for name in names})
    return Widths(names, np.concatenate(rows), largest(poor))


def largest(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """{parameter: the largest of its shares}."""
    return {name: max(one[name] for one in shares) for name in shares[0]}
