"""Private columns of a study: P(report | answer) of each question's payloads."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from inference.analyses.channel import Channel
from inference.analyses.table import Private, Values
from inference.likelihoods import clipped
from inference.models.plain_means import PlainMean
from inference.units import number_units
from ldp_client import mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question
from summaries.reductions import sets_of


@dataclass(frozen=True)
class NumberChannel:
    """How an answer is reported: clipped to low…high, then with noise, all in the question's own units.

    noise: the mechanism's name. scale: the noise's scale. reports: (distinct,). plain: the mean of the
    clipped answers without a law.
    """

    noise: str
    low: float
    high: float
    scale: float
    reports: Values
    plain: PlainMean

    @property
    def exact(self) -> bool:
        """Return True if `log_density` is that of the reports as they were sent."""
        return self.noise != "laplace"

    @property
    def mechanism(self) -> tuple[str, float, float, float]:
        """Return the noise and the bounds, which are the same for reports that can be joined."""
        return self.noise, self.low, self.high, self.scale

    def log_density(self, law: Distribution, reports: Array) -> Array:
        """Return log P(report) for answers that have these laws before clipping. Shapes broadcast."""
        base = clipped(law, self.low, self.high)
        shape = jnp.broadcast_shapes(jnp.shape(reports), base.batch_shape)
        return base.log_perturbed(self.noise, jnp.broadcast_to(reports, shape), jnp.asarray(self.scale))

    def shares(self, law: Distribution, cuts: Values) -> Array:
        """Return P(a report is in each part between cuts), (…, cuts + 1), for laws before clipping (…)."""
        edges = np.unique([self.low, self.high, *cuts])
        cells = clipped(law, self.low, self.high).perturbed_cells(self.noise, edges, self.scale)
        # The bounds need not be cuts: cells between the same cuts are one part.
        part = np.searchsorted(cuts, [*edges, np.inf])
        found = cells @ (part[:, None] == np.arange(len(cuts) + 1)).astype(np.float64)
        found = jnp.clip(found, 0.0, 1.0)
        return found / found.sum(axis=-1, keepdims=True)


def private_of(question: Question, payloads: Sequence[bytes], are_sets: bool = False) -> Private:
    """Return a question's payloads as a private column. are_sets: they are packed sets of choices instead."""
    mechanism = mechanism_for(question)
    if isinstance(mechanism, NumberMechanism):
        return _number_of(question, mechanism, payloads)
    assert isinstance(mechanism, ChoiceMechanism)
    sets = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
    distinct, where = np.unique(sets if are_sets else sets_of(mechanism, sets), axis=0, return_inverse=True)
    codes = where.ravel().astype(np.int64)
    if isinstance(mechanism, Hadamard):
        channel = _hadamard_channel(mechanism, distinct)
    else:
        bits = np.unpackbits(distinct, axis=1, bitorder="little")[:, : mechanism.choices].astype(bool)
        p, q = float(mechanism.p), float(mechanism.q)
        alone = bool((bits.sum(axis=1) == 1).all()) and abs(p + (mechanism.choices - 1) * q - 1) < 1e-12
        odds = np.nan if alone else mechanism.odds[0] / mechanism.odds[1]
        chances = np.where(np.eye(mechanism.choices) == 1, p, q)[None, None]
        channel = Channel(chances, bits, np.zeros(len(bits), np.int64), np.asarray([odds]))
    # If refusal is an answer too, it has a name that no label has.
    refused = "(refused)"
    while refused in mechanism.labels:
        refused = f"({refused})"
    answers = tuple(refused if label is None else str(label) for label in mechanism.labels)
    return Private(question.id, answers, codes, channel, bool(question.ordered and not question.refusal))


def _number_of(question: Question, mechanism: NumberMechanism, payloads: Sequence[bytes]) -> Private:
    """Return a number's payloads as reports in own units. With Laplace noise, they are clipped to the bounds.

    With Laplace noise, the distance of a report beyond a bound carries no information on the answer. Clipping
    omits a constant factor, and makes many reports equal.
    """
    places = np.frombuffer(b"".join(payloads), ">i4").astype(np.float64) / mechanism.levels
    low, width = number_units(question)
    plain = PlainMean(low + width * places.mean(), width * places.std() / np.sqrt(len(places)))
    if mechanism.name == "laplace":
        places = np.clip(places, 0.0, 1.0)
    distinct, codes = np.unique(places, return_inverse=True)
    scale = width * float(mechanism.scale) / mechanism.levels
    channel = NumberChannel(mechanism.name, low, low + width, scale, low + width * distinct, plain)
    return Private(question.id, (), codes.ravel().astype(np.int64), channel)


def _hadamard_channel(mechanism: Hadamard, distinct: NDArray[np.uint8]) -> Channel:
    """Return the channel of Hadamard response: a report is one column, which supports its set of choices.

    A choice of another block is supported less than a choice of the same block, so two numbers do not
    suffice. Columns with the same set are one kind.
    """
    size, k = mechanism.payload_size, mechanism.choices
    payloads = np.arange(mechanism.columns, dtype=">u4").view(np.uint8).reshape(-1, 4)[:, 4 - size :]
    kinds, kind = np.unique(sets_of(mechanism, payloads), axis=0, return_inverse=True)
    bits = np.unpackbits(kinds, axis=1, bitorder="little")[:, :k]
    p, halves = float(mechanism.p), 2 * mechanism.blocks
    of_column = np.where(bits.T == 1, p, (1 - p) / (halves - 1)) * 2 / mechanism.width
    places = {row.tobytes(): place for place, row in enumerate(kinds)}
    shows = np.eye(len(kinds), dtype=bool)[[places[row.tobytes()] for row in distinct]]
    chances = of_column * np.bincount(kind.ravel())
    return Channel(chances[None, None], shows, np.zeros(len(shows), np.int64))
