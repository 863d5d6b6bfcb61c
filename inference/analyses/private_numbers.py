"""Private numbers in analyses: the law of a noisy report, given the law of the clipped answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import Distribution

from inference.analyses.table import Private, Values
from inference.likelihoods import clipped
from inference.models.plain_means import PlainMean
from inference.units import number_units
from ldp_client import mechanism_for
from ldp_client.mechanisms.number import NumberMechanism
from schemas import Question


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


def private_number_of(question: Question, payloads: Sequence[bytes]) -> Private:
    """Return a number's payloads as reports in own units. With Laplace noise, they are clipped to the bounds.

    With Laplace noise, the distance of a report beyond a bound carries no information on the answer. Clipping
    omits a constant factor, and makes many reports equal.
    """
    mechanism = mechanism_for(question)
    assert isinstance(mechanism, NumberMechanism)
    grid = np.frombuffer(b"".join(payloads), ">i4").astype(np.float64)
    low, width = number_units(question)
    scale = float(mechanism.scale) / mechanism.levels
    places = grid / mechanism.levels
    plain = PlainMean(low + width * places.mean(), width * places.std() / np.sqrt(max(len(places), 1)))
    if mechanism.name == "laplace":
        places = np.clip(places, 0.0, 1.0)
    distinct, codes = np.unique(places, return_inverse=True)
    ends, reports = (low, low + width), low + width * distinct
    channel = NumberChannel(mechanism.name, *ends, width * scale, reports, plain)
    return Private(question.id, (), codes.ravel().astype(np.int64), channel)
