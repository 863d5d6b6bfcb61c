"""`summed_gaussian`: sums of choices, of a number's cells, or of a number and its square.

For a record, it sums products of entries, or the marginal moments of each field.
"""

from ldp_client.core.integers import isqrt
from ldp_client.core.quantise import UNIT, grid_index, signed_units
from ldp_client.core.randomness import Source
from ldp_client.core.types import Any
from ldp_client.documents.question import Question
from ldp_client.mechanisms.base import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
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


class SummedRecord(GaussianStatistics):
    """GaussianStatistics with noise shared among the devices of a sum; 8 bytes a coordinate."""

    name = "summed_gaussian"
    statistic = "record"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.size = len(self.coordinates)
        self.payload_size = WORD_BYTES * self.size

    def _hidden_distance(self, question: Question) -> int:
        return summed_distance(question, len(self.coordinates))

    def noisy_vector(self, quantised: "list[int]", random: Source) -> bytes:
        """Return the vector to split into shares. It nearly is the answer: never send, write or show it."""
        return pack_words(self.noisy_sums(quantised, random))

    def randomise(self, quantised: "list[int]", random: Source) -> bytes:
        """Raise RefusedError: the vector must not be sent as a payload."""
        del quantised, random
        raise shares_only(self.field)

    def check(self, payload: bytes) -> None:
        """Raise ReportError: no single report is ever sent."""
        del payload
        raise self.impossible("travels as secret shares only")


class SummedMoments(SummedMechanism):
    """A number scaled to [−1, 1], and 3/2 of its square; of a record: x_1, 3/2 x_1², …, the response last.

    For the first round of DCA Algorithm 2. Two answers to one field are at most 2 apart, so two records
    with m fields are at most 2√m apart, reached by x_j = ±1 for every field.
    """

    statistic = "moments"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.fields = question.fields
        self.bounds = question.bounds
        self._record = None if question.bounds else RecordMechanism(question)
        if self._record:
            self.statistic = "marginals"
        fields = len(self.fields) or 1
        self.size = 2 * fields
        # Rounding to nearest moves each coordinate of a difference by at most 1: √size in L2.
        room = max(summed_distance(question, self.size) - isqrt(self.size - 1) - 1, 0)
        self._take_grid(isqrt(room * room // (4 * fields)), 2)

    def quantise(self, answer: Any) -> "list[int]":
        """Return the moments on the grid; numbers out of bounds are clipped. Raises AnswerError."""
        if self._record:
            scaled, response = self._record.quantise_fields(answer)
            scaled.append(response)
        else:
            scaled = [signed_units(answer, self.bounds, UNIT, self.field)]
        moments = []
        for units in scaled:
            moments.append(nearest(units * self.grid, UNIT))
            square = SQUARE_TOP * units * units
            moments.append(nearest(square * self.grid, SQUARE_BOTTOM * UNIT * UNIT))
        return moments


class SummedChoice(SummedMechanism):
    """One-hot: a coordinate for each choice; for yes/no one coordinate, the yes."""

    statistic = "choice"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self._choices = ChoiceMechanism(question)
        boolean = self._choices.boolean
        self._first = 1 if boolean else 0
        self.size = self._choices.choices - self._first
        distance = summed_distance(question, self.size)
        self._take_grid(distance if boolean else isqrt(distance * distance // 2), 1)

    def quantise(self, answer: Any) -> "list[int]":
        """Return the choice one-hot. Raise AnswerError if the answer is not a choice."""
        chosen = self._choices.quantise(answer) - self._first
        return [self.grid if index == chosen else 0 for index in range(self.size)]


class SummedHistogram(SummedMechanism):
    """A number's cell among `size` equal ones between its bounds, one-hot."""

    statistic = "histogram"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        assert question.bounds is not None
        assert question.mechanism.cells is not None
        self.bounds = question.bounds
        self.size = question.mechanism.cells
        distance = summed_distance(question, self.size)
        self._take_grid(isqrt(distance * distance // 2), 1)

    def quantise(self, answer: Any) -> "list[int]":
        """Return the cell one-hot; the outermost cell if out of bounds. Raises AnswerError."""
        place = grid_index(answer, self.bounds, self.size * UNIT, self.field)
        cell = min(place // UNIT, self.size - 1)
        return [self.grid if index == cell else 0 for index in range(self.size)]


def summed_gaussian(question: Question) -> Mechanism:
    """Build the mechanism `summed_gaussian` for a kind of question. Raises StudyError."""
    if question.ask == "record":
        return SummedMoments(question) if question.mechanism.statistic else SummedRecord(question)
    if question.ask == "number":
        return SummedMoments(question) if question.mechanism.cells is None else SummedHistogram(question)
    return SummedChoice(question)
