"""One device's share of the Gaussian noise that protects a sum, for the protocol secure_sum only.

The noise of N − T − 1 devices adds up to the analytic Gaussian mechanism's (DCA Theorem 1, with the
variance of METHODS 1.5). A sum of rounded normals of sd 2**20 is, to a total variation far below
2**-188, the rounding of an exact normal plus independent rounding errors: post-processing.
One device's vector alone is *not* protected; it leaves the device only as secret shares.

Sums are modulo 2**64 and cannot wrap. A distance, and so a coordinate of a statistic, is at most
64 × 2**20 × √N grid units, and N is at most 2**24. So N coordinates stay below 2**62, and all the
noise below 2**49.
"""

from ldp_client.core.integers import isqrt
from ldp_client.core.noise_levels import NOISE_BITS, gaussian_radius
from ldp_client.core.randomness import Source
from ldp_client.core.strips import NOISE_REACH, normal
from ldp_client.documents.errors import RefusedError, StudyError
from ldp_client.documents.question import Question
from ldp_client.mechanisms.base import Mechanism, Privacy

WORD_BYTES = 8
MODULUS = 1 << 64
# The square of a number in [−1, 1] has weight 3/2: (x, 3/2 x²) still has L2 diameter 2, reached by x = ±1.
SQUARE_TOP, SQUARE_BOTTOM = 3, 2


def summed_distance(question: Question, size: int) -> int:
    """Return the L2 distance of two sums, in grid units, that the noise of N − T − 1 devices hides."""
    protocol, stated = question.protocol, question.mechanism
    assert protocol is not None
    one = gaussian_radius(stated.epsilon, stated.delta, size * protocol.devices)
    return isqrt(one * one * protocol.noise_devices)


def pack_words(values: "list[int]") -> bytes:
    """Pack integers modulo 2**64, little-endian."""
    return b"".join([(value % MODULUS).to_bytes(WORD_BYTES, "little") for value in values])


def shares_only(field: str) -> RefusedError:
    """Return the error that `randomise` raises: one device's noise alone would not protect a payload."""
    return RefusedError.say("core.sum_leaves", field=field)


class SummedMechanism(Mechanism):
    """A vector of `size` integers plus round(2**20 × N(0, 1)) on each; 8 bytes a coordinate.

    statistic: its name. grid: integers for one unit of the statistic. noise_sd: the sd of one device's share,
    in those units. largest: the largest absolute coordinate of one device.
    """

    name = "summed_gaussian"
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
        if grid < 1:
            raise StudyError(
                f"{self.field}.mechanism",
                "epsilon or delta is too small",
                code="study.epsilon_too_small_for_sum",
            )
        self.grid = grid
        self.largest = span * grid + NOISE_REACH
        self.payload_size = WORD_BYTES * self.size

    def randomise(self, quantised: "list[int]", random: Source) -> bytes:
        """Raise RefusedError: the vector must not be sent as a payload."""
        del quantised, random
        raise shares_only(self.field)

    def check(self, payload: bytes) -> None:
        """Raise ReportError: no single report is ever sent."""
        del payload
        raise self.impossible("travels as secret shares only")

    def noisy_vector(self, quantised: "list[int]", random: Source) -> bytes:
        """Return the vector to split into shares. It nearly is the answer: never send, write or show it."""
        noise = normal(self.size, random)
        return pack_words([value + share for value, share in zip(quantised, noise)])


def nearest(numerator: int, denominator: int) -> int:
    """Return the nearest integer to a fraction; halves are rounded up."""
    return (2 * numerator + denominator) // (2 * denominator)
