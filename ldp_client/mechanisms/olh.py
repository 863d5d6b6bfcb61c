"""Optimized local hashing (Wang et al. 2017): randomized response on a hash of the choice."""

import struct
from fractions import Fraction

from ldp_client.core.integers import bytes_below
from ldp_client.core.noise_levels import hash_range
from ldp_client.core.randomness import Source, random_bits, truth_or_other
from ldp_client.documents.question import Question
from ldp_client.mechanisms.base import register
from ldp_client.mechanisms.choice import ChoiceMechanism

# A prime above every choice; all products stay below 2**53, which JavaScript's numbers hold exactly.
PRIME = (1 << 31) - 1
COEFFICIENTS = 3
SEED_BYTES = 4 * COEFFICIENTS


def _below_prime(random: Source) -> int:
    """Draw a uniform integer below PRIME; reject the only 31-bit word that is not below it."""
    while True:
        word = random_bits(32, random) >> 1
        if word < PRIME:
            return word


@register
class Olh(ChoiceMechanism):
    """Send a seed a, b, c, and by randomized response the hash ((a·x² + b·x + c) mod PRIME) mod hashes of x.

    S is the set of choices that hash to the reported value. A payload is a, b and c (4 bytes each), drawn
    uniformly below PRIME, then the value in the fewest bytes that hold `hashes` values; all big-endian. Over
    random seeds, the hashes of any three choices are independent. So q is exact, and the supports of two
    choices are uncorrelated whatever the share of a third choice is. Privacy holds for each seed.
    """

    name = "olh"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.hashes = hash_range(question.mechanism.epsilon)
        self._respond(question.mechanism.epsilon, self.hashes)
        # Another choice has the true hash with probability c, and any other hash equally often.
        whole, others = 1 << self.bits, self.hashes - 1
        smaller, larger_ones = PRIME // self.hashes, PRIME % self.hashes
        collisions = larger_ones * (smaller + 1) ** 2 + (self.hashes - larger_ones) * smaller**2
        same = collisions * others * self.threshold
        different = (PRIME * PRIME - collisions) * (whole - self.threshold)
        self.q = Fraction(same + different, PRIME * PRIME * whole * others)
        self.value_size = bytes_below(self.hashes)
        self.payload_size = SEED_BYTES + self.value_size

    def hash(self, seed: tuple[int, ...], index: int) -> int:
        """Return the hash of a choice, 0..hashes−1. seed: a, b, c."""
        a, b, c = seed
        return ((a * index + b) % PRIME * index + c) % PRIME % self.hashes

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw the hash function, the coin and the other value, whatever the answer."""
        seed = (_below_prime(random), _below_prime(random), _below_prime(random))
        value = truth_or_other(self.hash(seed, quantised), self.hashes, self.threshold, random)
        return struct.pack(">III", *seed) + value.to_bytes(self.value_size, "big")

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if the choice hashes to the reported value."""
        seed = struct.unpack(">III", payload[:SEED_BYTES])
        return self.hash(seed, index) == int.from_bytes(payload[SEED_BYTES:], "big")

    def check(self, payload: bytes) -> None:
        """Raise ReportError unless a, b, c and the value are in their ranges."""
        super().check(payload)
        if max(struct.unpack(">III", payload[:SEED_BYTES])) >= PRIME:
            raise self.impossible("has a seed that is never drawn")
        if int.from_bytes(payload[SEED_BYTES:], "big") >= self.hashes:
            raise self.impossible(f"is not among {self.hashes} groups")
