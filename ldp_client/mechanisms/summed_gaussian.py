"""`summed_gaussian`: sums of choices, of a number's cells, or of a number and its square.

For a record, it sums products of entries, or the marginal moments of each field.

Each device adds a share of the Gaussian noise that protects the sum, for the protocol secure_sum only.

The noise of N − T − 1 devices adds up to the analytic Gaussian mechanism's (DCA Theorem 1, with the
variance of METHODS 1.5). A sum of rounded normals of sd 2**20 is, to a total variation far below
2**-188, the rounding of an exact normal plus independent rounding errors: post-processing.
One device's vector alone is *not* protected; it leaves the device only as secret shares.

Sums are modulo 2**64 and cannot wrap. A distance, and so a coordinate of a statistic, is at most
64 × 2**20 × √N grid units, and N is at most 2**24. So N coordinates stay below 2**62, and all the
noise below 2**49.
"""

from math import isqrt
from typing import Any

from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius
from ldp_client.core.quantise import UNIT, grid_index, signed_units
from ldp_client.core.randomness import Source
from ldp_client.core.strips import NOISE_REACH, normal
from ldp_client.documents.channel import MODULUS, WORD_BYTES
from ldp_client.documents.errors import RefusedError
from ldp_client.documents.question import Question
from ldp_client.documents.rules import refuse_study
from ldp_client.mechanisms.base import MECHANISMS, Mechanism, Privacy
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.record import RecordMechanism

# The square of a number in [−1, 1] has weight 3/2: (x, 3/2 x²) still has L2 diameter 2, reached by x = ±1.
SQUARE_TOP, SQUARE_BOTTOM = 3, 2


def summed_distance(question: Question, size: int) -> int:
    """Return the L2 distance of two sums, in grid units, that the noise of N − T − 1 devices hides."""
    protocol, stated = question.protocol, question.mechanism
    assert protocol is not None
    one = gaussian_radius(stated.epsilon, stated.delta, size * protocol.devices)
    return isqrt(one * one * protocol.noise_devices)


def pack_words(values: list[int]) -> bytes:
    """Pack integers modulo 2**64, little-endian."""
    return b"".join([(value % MODULUS).to_bytes(WORD_BYTES, "little") for value in values])


class SharesOnly(Mechanism):
    """A mechanism whose payloads travel as secret shares only: one device's noise would not protect them."""

    name = "summed_gaussian"

    def randomise(self, quantised: list[int], random: Source) -> bytes:
        """Raise RefusedError: the vector must not be sent as a payload."""
        del quantised, random
        raise RefusedError.say("core.sum_leaves", field=self.field)

    def check(self, payload: bytes) -> None:
        """Raise ReportError: no single report is ever sent."""
        del payload
        raise self.impossible("travels as secret shares only")


class SummedMechanism(SharesOnly):
    """A vector of `size` integers plus round(2**20 × N(0, 1)) on each; 8 bytes a coordinate.

    statistic: its name. grid: integers for one unit of the statistic. noise_sd: the sd of one device's share,
    in those units. largest: the largest absolute coordinate of one device.
    """

    size: int
    grid: int
    largest: int
    statistic: str

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.privacy = Privacy(question.mechanism.epsilon, question.mechanism.delta)

    @property
    def noise_sd(self) -> float:
        return (1 << NOISE_BITS) / self.grid

    def _take_grid(self, grid: int, span: int) -> None:
        """Set the grid and the payload size. span: the largest coordinate of the statistic, in units."""
        problem = "epsilon or delta is too small"
        refuse_study(grid < 1, self.where, problem, "study.epsilon_too_small_for_sum")
        self.grid = grid
        self.largest = span * grid + NOISE_REACH
        self.payload_size = WORD_BYTES * self.size

    def noisy_vector(self, quantised: list[int], random: Source) -> bytes:
        """Return the vector to split into shares. It nearly is the answer: never send, write or show it."""
        noise = normal(self.size, random)
        return pack_words([value + share for value, share in zip(quantised, noise)])


def nearest(numerator: int, denominator: int) -> int:
    """Return the nearest integer to a fraction; halves are rounded up."""
    return (2 * numerator + denominator) // (2 * denominator)


class SummedRecord(SharesOnly, GaussianStatistics):
    """GaussianStatistics with noise shared among the devices of a sum; 8 bytes a coordinate."""

    statistic = "record"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.size = len(self.coordinates)
        self.payload_size = WORD_BYTES * self.size

    def _hidden_distance(self, question: Question) -> int:
        return summed_distance(question, len(self.coordinates))

    def noisy_vector(self, quantised: list[int], random: Source) -> bytes:
        """Return the vector to split into shares. It nearly is the answer: never send, write or show it."""
        return pack_words(self.noisy_sums(quantised, random))


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

    def quantise(self, answer: Any) -> list[int]:
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

    def quantise(self, answer: Any) -> list[int]:
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

    def quantise(self, answer: Any) -> list[int]:
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


MECHANISMS["summed_gaussian"] = summed_gaussian
