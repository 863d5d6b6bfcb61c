"""One noisy bit for each choice: optimized (Wang et al. 2017) or symmetric unary encoding (basic RAPPOR)."""

import struct
from fractions import Fraction

from ldp_client.core.noise_levels import CHOICE_BITS, unary_threshold
from ldp_client.core.randomness import Source, read
from ldp_client.documents.question import Question
from ldp_client.documents.rules import refuse_study
from ldp_client.mechanisms.base import register
from ldp_client.mechanisms.choice import ChoiceMechanism

# With more choices, reports would grow to many kilobytes for no gain: olh and hadamard need a few bytes.
MOST_CHOICES = 1 << 16
# A threshold's binary digits, the highest first.
DIGITS = f"{{:0{CHOICE_BITS}b}}"


class UnaryMechanism(ChoiceMechanism):
    """S is the set of choices whose bit is 1.

    A payload has ⌈k/8⌉ bytes; choice j is bit j % 8 (lowest first) of byte j // 8; spare bits are 0.
    """

    bitwise = True

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        problem = f"{self.name!r} takes at most {MOST_CHOICES} choices; 'olh' or 'hadamard' would fit"
        is_large = self.choices > MOST_CHOICES
        refuse_study(is_large, f"{self.where}.name", problem, "study.too_many_choices")
        self.payload_size = (self.choices + 7) // 8
        self._all = (1 << self.choices) - 1

    def pack(self, bits: int) -> bytes:
        """Return the payload of an integer's lowest k bits."""
        return (bits & self._all).to_bytes(self.payload_size, "little")

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if the choice's bit is 1."""
        return bool(payload[index >> 3] >> (index & 7) & 1)

    def check(self, payload: bytes) -> None:
        """Raise ReportError unless the payload's spare bits are 0."""
        super().check(payload)
        if int.from_bytes(payload, "little") >> self.choices:
            raise self.impossible("has a bit set beyond the last choice")


def biased_bits(threshold: int, size: int, random: Source) -> int:
    """Draw 8 × size independent bits, each 1 with probability threshold / 2**CHOICE_BITS exactly."""
    return bits_below(threshold, read_parts(CHOICE_BITS, size, random))


def read_parts(count: int, size: int, random: Source) -> tuple[bytes, ...]:
    """Read several random strings of `size` bytes at once."""
    return struct.unpack(f"{size}s" * count, read(random, size * count))


def bits_below(threshold: int, parts: tuple[bytes, ...]) -> int:
    """Return a bit for each random fraction in CHOICE_BITS strings: 1 if the fraction is below threshold.

    Bit-sliced: all fractions are compared with the threshold at once, lowest digit first. The time
    depends only on size and threshold.
    """
    read = int.from_bytes
    below = 0
    for digit, fresh in zip(reversed(DIGITS.format(threshold)), parts):
        if digit == "1":
            below |= read(fresh, "little")
        else:
            below &= read(fresh, "little")
    # The strings hold the complements of the fractions' digits, so `below` means fraction < threshold.
    return below


@register
class Oue(UnaryMechanism):
    """Bit j is 1 with probability ½ for the true choice and threshold / 2**bits for other choices."""

    name = "oue"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.threshold = unary_threshold(question.mechanism.epsilon)
        whole = 1 << self.bits
        self._state_odds(whole - self.threshold, self.threshold)
        self.p = Fraction(1, 2)
        self.q = Fraction(self.threshold, whole)

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw noisy bits, with a fair coin for the true choice, in a time independent of the answer."""
        parts = read_parts(self.bits + 1, self.payload_size, random)
        noisy = bytearray(self.pack(bits_below(self.threshold, parts)))
        # Within one byte: the time of a long integer's arithmetic would reveal its highest bit.
        place, own = quantised >> 3, 1 << (quantised & 7)
        noisy[place] = (noisy[place] & ~own) | (parts[-1][place] & own)
        return bytes(noisy)


@register
class Sue(UnaryMechanism):
    """The true choice's bit is 1, all others 0; each bit is flipped with probability threshold / 2**bits.

    Two answers differ in two bits, so e^ε = ((2**bits − threshold) / threshold)².
    """

    name = "sue"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.threshold = unary_threshold(question.mechanism.epsilon / 2)
        whole = 1 << self.bits
        kept = whole - self.threshold
        self._state_odds(kept * kept, self.threshold * self.threshold)
        self.p = Fraction(kept, whole)
        self.q = Fraction(self.threshold, whole)

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Flip bits of the true choice's encoding, in a time that does not depend on the answer."""
        flips = bytearray(self.pack(biased_bits(self.threshold, self.payload_size, random)))
        flips[quantised >> 3] ^= 1 << (quantised & 7)
        return bytes(flips)
