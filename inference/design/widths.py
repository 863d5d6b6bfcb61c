"""Posterior widths in simulated studies, for numbers of devices at one budget: works of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.design.calibration import generator_of
from inference.design.simulated_posteriors import MOST_SIDE_BY_SIDE, Batches, batches_of, poor_chains
from inference.design.simulation import for_devices, simulate
from inference.design.works import Tell, Work
from inference.models import model_for
from inference.models.base import Model, Truth
from ldp_client import mechanism_for
from schemas import Question

Vector = NDArray[np.float64]

DRAWS, THIN = 400, 1
# Half of the 90 % interval is the ± in width options.
TAILS = (0.05, 0.95)
# For the estimate of the remaining time: simulating takes about this share, fitting the rest.
SIMULATION = 0.1


class Widths(NamedTuple):
    """half: (devices, parameters). poor: {parameter: the share of studies whose chain mixes poorly}."""

    parameters: tuple[str, ...]
    half: Vector
    poor: Mapping[str, float]


class WidthFits:
    """Batches of simulated studies, one for each number of devices and each truth: widths of intervals."""

    def __init__(
        self, question: Question, truths: Sequence[Truth], devices: Sequence[int], seed: int
    ) -> None:
        self._question, self._seed, self._mechanism = question, seed, mechanism_for(question)
        self._cells = [(n, truth) for n in devices for truth in truths]
        self._first = self._model(0)
        self._batches = Batches(self._first, len(self._cells), seed, DRAWS, THIN)

    def _model(self, place: int) -> Model:
        n, truth = self._cells[place]
        random = generator_of(self._seed, place)
        summary = simulate(self._question, self._mechanism, truth, n, random, clip=False)
        return model_for(self._question, summary)

    def __call__(self, number: int, tell: Tell) -> dict[str, Any]:
        places = batches_of(len(self._cells))[number]
        models = []
        for done, place in enumerate(places, 1):
            models.append(self._model(place) if place else self._first)
            tell(SIMULATION * done / len(places))
        draws = self._batches.draws(models, places)
        halves = {
            name: np.diff(np.quantile(found, TAILS, axis=1), axis=0)[0] / 2 for name, found in draws.items()
        }
        each: dict[str, Mapping[str, NDArray[Any]]] = {"half": halves, "poor": poor_chains(draws)}
        return {what: {name: one.tolist() for name, one in of.items()} for what, of in each.items()}


def works_of(
    question: Question, truths: Sequence[Truth], devices: Sequence[int], seed: int
) -> tuple[Work, ...]:
    """Return the simulations to run; a secure sum has one per number of devices, as noise depends on it."""
    if question.protocol is not None:
        return tuple(_work(for_devices(question, n), truths, (n,), seed) for n in devices)
    return (_work(question, truths, tuple(devices), seed),)


def _work(question: Question, truths: Sequence[Truth], devices: tuple[int, ...], seed: int) -> Work:
    studies = len(devices) * len(truths)
    said = (
        f"{question.id}: fitted {{}} of {studies} simulated studies at epsilon {question.mechanism.epsilon}"
    )
    return Work(partial(WidthFits, question, truths, devices, seed), studies, said, MOST_SIDE_BY_SIDE)


def widths_of(found: Sequence[Sequence[Mapping[str, Any]]], truths: int) -> Widths:
    """Return medians over the truths for each number of devices, from all works of one budget."""
    names = tuple(found[0][0]["half"])
    rows, poor = [], []
    for parts in found:
        half = np.stack([np.concatenate([one["half"][name] for one in parts]) for name in names], axis=-1)
        rows.append(np.median(half.reshape(-1, truths, len(names)), axis=1))
        poor.append(
            {name: float(np.mean(np.concatenate([one["poor"][name] for one in parts]))) for name in names}
        )
    return Widths(names, np.concatenate(rows), largest(poor))


def largest(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """{parameter: the largest of its shares}."""
    return {name: max(one[name] for one in shares) for name in shares[0]}
