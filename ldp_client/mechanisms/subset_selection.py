"""Subset selection (Ye & Barg 2018; Wang et al. 2016): a random set that likely has the true choice."""

import struct
from fractions import Fraction

from ldp_client.core.noise_levels import subset_size, truth_threshold_of_weights
from ldp_client.core.randomness import Source, random_bits, read, uniform_below
from ldp_client.documents.question import Question
from ldp_client.mechanisms.base import register
from ldp_client.mechanisms.unary import UnaryMechanism

WORD = 1 << 32


@register
class SubsetSelection(UnaryMechanism):
    """Report `size` choices: the truth with probability threshold / 2**bits, and uniform other choices.

    A payload has a bit for each choice; `size` bits are 1.
    """

    name = "subset_selection"
    bitwise = False

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        epsilon, k = question.mechanism.epsilon, self.choices
        self.size = subset_size(epsilon, k)
        self.threshold = truth_threshold_of_weights(epsilon, self.size, k - self.size)
        whole, rest = 1 << self.bits, k - self.size
        # C(k−1, size−1) sets with the truth are equally likely, and so are C(k−1, size) sets without it.
        self._state_odds(self.threshold * rest, (whole - self.threshold) * self.size)
        self.p = Fraction(self.threshold, whole)
        self.q = Fraction(whole * self.size - self.threshold, whole * (k - 1))
        # Words below the ceiling are uniform modulo the number of choices left.
        self._ceilings = [WORD - WORD % (k - 1 - place) for place in range(self.size)]

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw `size` other choices in random order; the truth may replace the first.

        All of them are drawn, whether or not the truth is in the set. Until the other choices are renamed
        around the truth, memory access depends on random bytes only.
        """
        truthful = random_bits(self.bits, random) < self.threshold
        # `size` distinct numbers of 0..k−2 in uniformly random order: a shuffle that stops early.
        deck = list(range(self.choices - 1))
        words = struct.unpack(f"<{self.size}I", read(random, 4 * self.size))
        for place, word in enumerate(words):
            left = len(deck) - place
            chosen = place + (word % left if word < self._ceilings[place] else uniform_below(left, random))
            deck[place], deck[chosen] = deck[chosen], deck[place]
        others = [other + (other >= quantised) for other in deck[: self.size]]
        others[0] = quantised if truthful else others[0]
        bits = bytearray(self.payload_size)
        for other in others:
            bits[other >> 3] |= 1 << (other & 7)
        return bytes(bits)

    def check(self, payload: bytes) -> None:
        """Raise ReportError unless exactly `size` choices are in the set."""
        super().check(payload)
        if int.from_bytes(payload, "little").bit_count() != self.size:
            raise self.impossible(f"must name {self.size} choices")
