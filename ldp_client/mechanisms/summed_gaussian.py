"""One device's share of a Gaussian noise that protects a sum: for the route secure_sum alone.

N − T − 1 devices' noise together is that of the analytic Gaussian mechanism (DCA Theorem 1, with
METHODS 1.5 in place of its variance). A sum of rounded normals of sd 2**20 is, to a total variation
far below 2**-188, the rounding of an exact normal plus independent rounding errors: post-processing.
One device's vector alone is *not* protected; it leaves the device only as secret shares.

Sums are taken modulo 2**64 and cannot wrap: a distance is at most 64 × 2**20 × √N grid units, a
coordinate of a statistic at most that, and N at most 2**24, so that N coordinates stay below 2**62
and all the noise below 2**49.
"""

from ldp_client.core.calibration import NOISE_BITS, gaussian_radius
from ldp_client.core.integers import isqrt
from ldp_client.core.quantise import UNIT, grid_index, signed_units
from ldp_client.core.strips import NOISE_REACH, normal
from ldp_client.mechanisms.base import Mechanism, Privacy
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from schemas.errors import AnswerError, StudyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ldp_client.core.randomness import Source
    from schemas.study import Question

WORD_BYTES = 8
MODULUS = 1 << 64
# The square of a number in [−1, 1] weighs 3/2: (x, 3/2 x²) still has L2 diameter 2, reached by x = ±1.
SQUARE_TOP, SQUARE_BOTTOM = 3, 2


def summed_distance(question: "Question", size: int) -> int:
    """The L2 distance of two sums, in grid units, that the noise of N − T − 1 devices hides."""
    route, stated = question.route, question.mechanism
    assert route is not None
    one = gaussian_radius(stated.epsilon, stated.delta, size * route.clients)
    return isqrt(one * one * route.noisy)


def pack_words(values: "list[int]") -> bytes:
    """Integers modulo 2**64, little-endian."""
    return b"".join([(value % MODULUS).to_bytes(WORD_BYTES, "little") for value in values])


class SummedMechanism(Mechanism):
    """A vector of `size` integers plus round(2**20 × N(0, 1)) on each; 8 bytes a coordinate.

    grid: integers for one unit of the statistic. noise_sd: of one device's share, in those units.
    largest: no coordinate of one device is beyond it.
    """

    name = "summed_gaussian"
    size: int
    grid: int
    largest: int

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.privacy = Privacy(question.mechanism.epsilon, question.mechanism.delta)

    @property
    def noise_sd(self) -> float:
        return (1 << NOISE_BITS) / self.grid

    def _take_grid(self, grid: int, span: int) -> None:
        """span: the largest coordinate of the statistic, in units."""
        if grid < 1:
            raise StudyError(f"{self.field}.mechanism", "epsilon or delta is too small")
        self.grid = grid
        self.largest = span * grid + NOISE_REACH
        self.payload_size = WORD_BYTES * self.size

    def randomise(self, quantised: "list[int]", random: "Source") -> bytes:
        """Not protected alone: see the module."""
        noise = normal(self.size, random)
        return pack_words([value + share for value, share in zip(quantised, noise)])

    def check(self, payload: bytes) -> None:
        """No single report is ever sent."""
        del payload
        raise self.impossible("travels as secret shares only")


class SummedChoice(SummedMechanism):
    """One-hot: a coordinate for each choice; for yes/no one coordinate, the yes."""

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.labels = question.choices
        self.boolean = question.ask == "yes_no"
        self.size = 1 if self.boolean else len(self.labels)
        distance = summed_distance(question, self.size)
        self._take_grid(distance if self.boolean else isqrt(distance * distance // 2), 1)

    def quantise(self, answer: "Any") -> "list[int]":
        """Raises AnswerError for what is not one of the choices."""
        if self.boolean and isinstance(answer, bool):
            answer = self.labels[answer]
        if not isinstance(answer, str) or answer not in self.labels:
            raise AnswerError(self.field, f"must be one of its {len(self.labels)} choices")
        wanted = self.labels[1:] if self.boolean else self.labels
        return [self.grid if label == answer else 0 for label in wanted]

    def in_words(self) -> str:
        return _words("which choice it is", self)


class SummedHistogram(SummedMechanism):
    """A number's cell among `size` equal ones between its bounds, one-hot."""

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.bounds is not None
        assert question.mechanism.cells is not None
        self.bounds = question.bounds
        self.size = question.mechanism.cells
        distance = summed_distance(question, self.size)
        self._take_grid(isqrt(distance * distance // 2), 1)

    def quantise(self, answer: "Any") -> "list[int]":
        """Beyond the bounds the outermost cells, missing or NaN the middle one."""
        place = grid_index(answer, self.bounds, self.size * UNIT, self.field)
        cell = min(place // UNIT, self.size - 1)
        return [self.grid if index == cell else 0 for index in range(self.size)]

    def in_words(self) -> str:
        return _words(f"in which of {self.size} equal cells it lies", self)


class SummedMoments(SummedMechanism):
    """A number scaled to [−1, 1], and 3/2 of its square. Two numbers' vectors are at most 2 apart."""

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        assert question.bounds is not None
        self.bounds = question.bounds
        self.size = 2
        # Rounding moves each coordinate of a difference by at most 1: less than 2 in L2.
        self._take_grid((summed_distance(question, self.size) - 2) // 2, 2)

    def quantise(self, answer: "Any") -> "list[int]":
        """Beyond the bounds the nearest bound, missing or NaN the middle."""
        units = signed_units(answer, self.bounds, UNIT, self.field)
        square = SQUARE_TOP * units * units
        return [_nearest(units * self.grid, UNIT), _nearest(square * self.grid, SQUARE_BOTTOM * UNIT * UNIT)]

    def in_words(self) -> str:
        return _words("its value and its square", self)


class SummedRecord(GaussianStatistics):
    """GaussianStatistics whose noise is shared among the devices of a sum; 8 bytes a coordinate."""

    name = "summed_gaussian"

    def __init__(self, question: "Question") -> None:
        super().__init__(question)
        self.size = len(self.coordinates)
        self.payload_size = WORD_BYTES * self.size

    def _hidden_distance(self, question: "Question") -> int:
        return summed_distance(question, len(self.coordinates))

    def _pack(self, values: "list[int]") -> bytes:
        return pack_words(values)

    def check(self, payload: bytes) -> None:
        """No single report is ever sent."""
        del payload
        raise self.impossible("travels as secret shares only")


def _nearest(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _words(what: str, mechanism: SummedMechanism) -> str:
    return (
        f"Secret shares of {what} go to several nodes; only the sum over all devices is ever seen, with "
        f"Gaussian noise to which each device adds a share of standard deviation {mechanism.noise_sd:.4g}."
    )


def summed_gaussian(question: "Question") -> Mechanism:
    """The mechanism `summed_gaussian` for what the question asks. Raises StudyError."""
    if question.ask == "record":
        return SummedRecord(question)
    if question.ask == "number":
        return SummedMoments(question) if question.mechanism.cells is None else SummedHistogram(question)
    return SummedChoice(question)
