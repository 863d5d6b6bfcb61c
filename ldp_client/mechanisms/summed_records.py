"""`summed_gaussian` for a record: products of its entries, or the marginal moments of each field."""

from ldp_client.core.integers import isqrt
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.record import RecordMechanism
from ldp_client.mechanisms.summed import (
    SQUARE_BOTTOM,
    SQUARE_TOP,
    WORD_BYTES,
    SummedMechanism,
    nearest,
    pack_words,
    shares_only,
    summed_distance,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from ldp_client.documents.study import Question


class SummedRecord(GaussianStatistics):
    """GaussianStatistics whose noise is shared among the devices of a sum; 8 bytes a coordinate."""

    name = "summed_gaussian"
    statistic = "record"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.size = len(self.coordinates)
        self.payload_size = WORD_BYTES * self.size

    def _hidden_distance(self, question: "Question") -> int:
        return summed_distance(question, len(self.coordinates))

    def _pack(self, values: "list[int]") -> bytes:
        return pack_words(values)

    def randomise(self, quantised: "list[int]", random: "Source") -> bytes:
        """Raises RefusedError."""
        del quantised, random
        raise shares_only(self.field)

    def noisy_vector(self, quantised: "list[int]", random: "Source") -> bytes:
        """What a device splits into shares. Nearly the answer itself: never send, write or show it."""
        return super().randomise(quantised, random)

    def check(self, payload: bytes) -> None:
        """No single report is ever sent."""
        del payload
        raise self.impossible("travels as secret shares only")


class SummedMarginals(SummedMechanism):
    """Every field scaled to [−1, 1], and 3/2 of its square: x_1, 3/2 x_1², …, the response last.

    For the first round of DCA Algorithm 2. Two answers to one field are at most 2 apart, so two records
    with m fields are at most 2√m apart, reached by x_j = ±1 for every field. `grid`, `noise_sd`: as for one
    number.
    """

    statistic = "marginals"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self._record = RecordMechanism(question)
        self.fields = list(self._record.features)
        self.fields.append(self._record.response)
        self.size = 2 * len(self.fields)
        # Rounding to nearest moves each coordinate of a difference by at most 1: √size in L2.
        room = max(summed_distance(question, self.size) - isqrt(self.size - 1) - 1, 0)
        self._take_grid(isqrt(room * room // (4 * len(self.fields))), 2)

    def quantise(self, answer: "Any") -> "list[int]":
        """Beyond the bounds the nearest bound. Raises AnswerError."""
        scaled, response = self._record.quantise_fields(answer, UNIT, UNIT)
        scaled.append(response)
        moments = []
        for units in scaled:
            moments.append(nearest(units * self.grid, UNIT))
            square = SQUARE_TOP * units * units
            moments.append(nearest(square * self.grid, SQUARE_BOTTOM * UNIT * UNIT))
        return moments
